//! Encryption at rest: how an engine encrypts its files.

/// How an engine encrypts its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// The cipher, as the settings name it: `AES256-GCM`.
    pub cipher: &'static str,
    /// Identifies the master key; says nothing of the key itself.
    pub master_key: String,
    /// The number of the data key that new files get.
    pub data_key: u32,
}

impl Encryption {
    /// The option of engines that encrypt: the file of the master key, or `none`.
    pub const OPTION: &'static str = "key_file";
}
