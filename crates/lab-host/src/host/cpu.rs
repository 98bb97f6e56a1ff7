//! The processor.

use std::thread;

use serde::{Deserialize, Serialize};

use super::line;

/// The processor of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// The processor's model name.
    pub model: Option<String>,
    /// Logical cores this process may use.
    pub cores: usize,
    /// The current frequency of the first core, in MHz.
    pub mhz: Option<f64>,
    /// The highest frequency, in MHz, where the kernel manages it.
    pub max_mhz: Option<f64>,
    /// The kernel's frequency governor, such as `performance`.
    pub governor: Option<String>,
    /// The first core's level 2 cache, as the kernel writes it: `1024K`.
    pub l2: Option<String>,
    /// The first core's level 3 cache.
    pub l3: Option<String>,
}

impl Cpu {
    pub(super) fn collect(cpuinfo: &str) -> Cpu {
        let directory = "/sys/devices/system/cpu/cpu0";
        let khz = line(format!("{directory}/cpufreq/cpuinfo_max_freq"));
        Cpu {
            model: field(cpuinfo, "model name"),
            cores: thread::available_parallelism().map_or(1, usize::from),
            mhz: field(cpuinfo, "cpu MHz").and_then(|m| m.parse().ok()),
            max_mhz: khz.and_then(|k| Some(k.parse::<f64>().ok()? / 1e3)),
            governor: line(format!("{directory}/cpufreq/scaling_governor")),
            l2: cache(directory, "2"),
            l3: cache(directory, "3"),
        }
    }
}

fn field(cpuinfo: &str, name: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim().to_owned())
    })
}

fn cache(directory: &str, level: &str) -> Option<String> {
    (0..8).find_map(|index| {
        let cache = format!("{directory}/cache/index{index}");
        let is_it = line(format!("{cache}/level")).as_deref() == Some(level);
        if is_it {
            line(format!("{cache}/size"))
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_core_names_the_model() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\ncpu MHz\t\t: 1999.5\n\
                    processor\t: 1\nmodel name\t: Other\n";
        assert_eq!(field(text, "model name").unwrap(), "Some CPU @ 2.00GHz");
        assert_eq!(Cpu::collect(text).mhz, Some(1999.5));
        assert_eq!(Cpu::collect("").model, None);
    }
}
