//! `romanesco lab cost`.

use std::path::PathBuf;

use lab_report::cost::{self, CostOptions};
use lab_report::record::Prices;
use lab_report::{Error, Result, store};
use stdx::ByteSize;

#[derive(clap::Args)]
#[command(after_help = "Example: romanesco lab cost out/first --prices local --size 1000G")]
pub(crate) struct Args {
    /// The results directory
    run: PathBuf,
    /// Price list: a name from `lab list prices` or a TOML file [default: that of the run]
    #[arg(long, value_name = "NAME|FILE")]
    prices: Option<String>,
    /// Estimate for this size of live data, with the measured rates [default: the measured size]
    #[arg(long, value_name = "SIZE")]
    size: Option<ByteSize>,
    /// Number of replicas
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    replicas: u32,
    /// Highest p99 latency of a sustained rate, in milliseconds [default: that of the run]
    #[arg(long, value_name = "MS")]
    p99: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    if let Some(p99) = args.p99
        && (p99.is_nan() || p99 <= 0.0)
    {
        return Err(Error::usage(format!("--p99 {p99}: milliseconds, above 0")));
    }
    let record = store::load(&args.run)?;
    let prices = match &args.prices {
        Some(named) => Prices::parse(&Prices::text(named)?)?,
        None => record.prices.clone().unwrap_or_else(Prices::default_prices),
    };
    let options = CostOptions {
        size: args.size.map(ByteSize::bytes).filter(|s| *s > 0),
        replicas: args.replicas,
        p99_ms: args.p99,
    };
    let cost = cost::estimate(&record, &prices, &options);
    if args.json {
        say!("{}", serde_json::json!(cost));
    } else {
        say!("{}", cost::render(&cost).trim_end());
    }
    Ok(0)
}
