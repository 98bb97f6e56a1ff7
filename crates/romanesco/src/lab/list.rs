//! `romanesco lab list`.

use clap::ValueEnum;
use lab::experiment::{articles, experiments};
use lab::targets::{factories, servers};
use lab_report::Result;
use lab_report::record::{Preset, Prices, Volume, built_in_prices};
use serde_json::json;
use stdx::ByteSize;
use stdx::units::{count, seconds};

#[derive(clap::Args)]
#[command(after_help = "Example: romanesco lab list targets")]
pub(crate) struct Args {
    /// What to list [default: everything]
    what: Option<What>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Experiments,
    Targets,
    Presets,
    Articles,
    Volumes,
    Prices,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let shown = |what| args.what.is_none_or(|w| w == what);
    if args.json {
        print_json(&shown);
        return Ok(0);
    }
    if shown(What::Experiments) {
        say!("experiments");
        for e in experiments() {
            say!("  {:<16} {}", e.name, e.about);
            say!("  {:<16} after {}", "", e.source);
        }
    }
    if shown(What::Targets) {
        say!("targets");
        for factory in factories() {
            print_target(factory);
        }
        say!("servers");
        for server in servers() {
            let missing = server
                .missing
                .map_or(String::new(), |why| format!(" ({why})"));
            say!("  {:<34} {}{missing}", server.name, server.about);
        }
    }
    if shown(What::Presets) {
        say!("presets");
        for e in experiments() {
            for preset in Preset::ALL {
                let s = (e.sizes)(preset);
                say!(
                    "  {:<16} {:<10} {:>8} rows, memory {}, cache {}, a load step at most {}",
                    e.name,
                    preset,
                    count(s.rows as f64),
                    ByteSize::mib(s.memory_mib),
                    ByteSize::mib(s.cache_mib),
                    seconds(s.load_seconds)
                );
            }
        }
    }
    print_prices(&shown);
    Ok(0)
}

fn print_prices(shown: &dyn Fn(What) -> bool) {
    if shown(What::Articles) {
        say!("articles (lab run --as NAME)");
        for a in articles() {
            say!("  {:<26} {}: {}", a.name, a.by, a.title);
            say!("  {:<26} {}; differs: {}", "", a.experiment, a.differs);
        }
    }
    if shown(What::Volumes) {
        say!("volumes (for --volume and --sweep volume=: [COUNTx]KIND[-IOPS[-MB]])");
        for prices in price_files() {
            say!("  {:<16} {}, {}", prices.name, prices.date, prices.source);
            prices.volumes.iter().for_each(print_volume);
        }
    }
    if shown(What::Prices) {
        say!("prices");
        for prices in price_files() {
            let about = format!("{}, {}", prices.date, prices.source);
            say!("  {:<16} {about}", prices.name);
            for v in &prices.volumes {
                say!("  {:<16}   {} at {} dollars a GB", "", v.name, v.gb_month);
            }
        }
    }
}

/// The limits and prices of a kind of volume.
fn print_volume(volume: &Volume) {
    let mut parts = vec![format!(
        "up to {} operations/s, {} MB/s, {} GB",
        count(volume.iops_max),
        volume.mb_max,
        volume.gb_max
    )];
    match (volume.iops_included, volume.iops_per_gb_included) {
        (iops, per_gb) if 0.0 < per_gb => {
            parts.push(format!(
                "{per_gb} operations/s a GB and at least {iops} included"
            ));
        }
        (iops, _) if 0.0 < iops => parts.push(format!("{iops} operations/s included")),
        _ => {}
    }
    parts.extend(volume.mb_included.map(|mb| format!("{mb} MB/s included")));
    parts.push(format!("{} dollars a GB and month", volume.gb_month));
    let dearest = volume.iops_tiers.first();
    parts.extend(dearest.map(|tier| format!("{} dollars an operation/s", tier.month)));
    if 0.0 < volume.mb_month {
        parts.push(format!("{} dollars a MB/s", volume.mb_month));
    }
    say!("  {:<16}   {:<5} {}", "", volume.name, parts.join("; "));
}

fn price_files() -> Vec<Prices> {
    let parsed = |name: &str| Prices::text(name).and_then(|t| Prices::parse(&t));
    let all = built_in_prices().into_iter().map(parsed);
    all.filter_map(std::result::Result::ok).collect()
}

fn print_target(factory: &dyn kv::Factory) {
    let state = match (factory.available(), factory.feature()) {
        (true, _) => factory.version().unwrap_or_default(),
        (false, Some(feature)) => format!("not compiled in: build with --features {feature}"),
        (false, None) => "not compiled in".to_owned(),
    };
    say!(
        "  {:<16} {} ({state}; {})",
        factory.name(),
        factory.about(),
        factory.license()
    );
    for option in factory.options() {
        let default = option.default;
        say!(
            "  {:<16}   {}:{}={} [default: {default}]",
            "",
            factory.name(),
            option.name,
            option.values
        );
        say!("  {:<16}     {}", "", option.about);
    }
}

fn print_json(shown: &dyn Fn(What) -> bool) {
    let mut all = serde_json::Map::new();
    if shown(What::Experiments) {
        let list = experiments().iter().map(
            |e| json!({ "name": e.name, "about": e.about, "source": e.source, "params": e.params }),
        );
        all.insert("experiments".to_owned(), list.collect());
    }
    if shown(What::Targets) {
        let list = factories().into_iter().map(|f| {
            json!({
                "name": f.name(), "about": f.about(), "available": f.available(),
                "feature": f.feature(), "version": f.version(), "license": f.license(),
                "options": f.options(), "capabilities": f.capabilities(),
            })
        });
        all.insert("targets".to_owned(), list.collect());
        let list = servers()
            .into_iter()
            .map(|s| json!({ "name": s.name, "about": s.about, "missing": s.missing }));
        all.insert("servers".to_owned(), list.collect());
    }
    if shown(What::Presets) {
        let list = experiments().iter().flat_map(|e| {
            Preset::ALL.map(|p| json!({ "experiment": e.name, "preset": p, "sizes": (e.sizes)(p) }))
        });
        all.insert("presets".to_owned(), list.collect());
    }
    if shown(What::Articles) {
        let list = articles().iter().map(|a| {
            json!({
                "name": a.name, "title": a.title, "by": a.by, "experiment": a.experiment,
                "differs": a.differs,
            })
        });
        all.insert("articles".to_owned(), list.collect());
    }
    if shown(What::Volumes) && !shown(What::Prices) {
        let list = price_files().into_iter();
        let list = list.map(|p| {
            json!({ "prices": p.name, "date": p.date, "source": p.source, "volumes": p.volumes })
        });
        all.insert("volumes".to_owned(), list.collect());
    }
    if shown(What::Prices) {
        let list = price_files().into_iter().map(|p| json!(p));
        all.insert("prices".to_owned(), list.collect());
    }
    say!("{}", serde_json::Value::Object(all));
}
