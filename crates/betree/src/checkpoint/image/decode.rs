//! Decoding an image. No byte is trusted.

use std::str;

use crypt::Seal;
use stdx::hash;

use super::{
    ASCENDING, BUCKET_LEN, BucketImage, HASH_LEN, HEADER_LEN, Image, MAGIC, POINT_LOOKUPS, RUN_LEN,
    SEALED_VERSION, TREE_LEN, TreeFlags, TreeImage, VERSION,
};
use crate::checkpoint::bytes::{Decoded, Reader};
use crate::error::{Error, Result};
use crate::run::RunMeta;
use crate::types::{Extent, RunId, Seq, TreeId};

impl Image {
    /// Decode `bytes` and check every invariant.
    ///
    /// # Errors
    /// `Corrupt`: what is wrong. `Invalid`: written by a newer program.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Image> {
        let corrupt = |what: &str| Error::corrupt(format!("the image of the catalog {what}"));
        let body = bytes.split_last_chunk::<HASH_LEN>();
        let Some((body, hash)) = body.filter(|(body, _)| HEADER_LEN <= body.len()) else {
            return Err(corrupt("is cut short"));
        };
        if !body.starts_with(&MAGIC) {
            return Err(corrupt("begins with other bytes"));
        }
        if hash::hash64(body).to_le_bytes() != *hash {
            return Err(corrupt("has a wrong checksum"));
        }
        let mut reader = Reader::new(body.get(MAGIC.len()..).unwrap_or_default());
        let version = reader.u32().map_err(corrupt)?;
        if version != VERSION && version != SEALED_VERSION {
            return Err(Error::invalid(format!(
                "the image of the catalog has version {version} and this program reads {VERSION} \
                 and {SEALED_VERSION}: open the store with the program that wrote it"
            )));
        }
        let image = decode_body(&mut reader, version).map_err(corrupt)?;
        image.validate().map_err(|what| corrupt(&what))?;
        Ok(image)
    }
}

fn decode_body(reader: &mut Reader<'_>, version: u32) -> Decoded<Image> {
    let trees = reader.count(TREE_LEN)?;
    let mut image = Image {
        number: reader.u64()?,
        last_seq: Seq(reader.u64()?),
        log_from: Seq(reader.u64()?),
        next_run: RunId(reader.u64()?),
        next_tree: reader.u32()?,
        runs: Vec::new(),
        trees: Vec::new(),
    };
    let runs = reader.count(RUN_LEN)?;
    image.runs.reserve_exact(runs);
    for _ in 0..runs {
        image.runs.push(run(reader, version)?);
    }
    image.trees.reserve_exact(reader.fits(trees, TREE_LEN)?);
    for _ in 0..trees {
        image.trees.push(tree(reader)?);
    }
    match reader.left() {
        0 => Ok(image),
        _ => Err("has bytes behind its end"),
    }
}

fn run(reader: &mut Reader<'_>, version: u32) -> Decoded<RunMeta> {
    let mut run = RunMeta {
        id: RunId(reader.u64()?),
        tree: TreeId(reader.u32()?),
        pages: reader.u32()?,
        bytes: reader.u64()?,
        raw_bytes: reader.u64()?,
        entries: reader.u64()?,
        tombstones: reader.u64()?,
        max_seq: Seq(reader.u64()?),
        fence_offset: reader.u64()?,
        filter_offset: reader.u64()?,
        fence_len: reader.u32()?,
        filter_len: reader.u32()?,
        extents: Vec::new(),
        min_key: Box::default(),
        max_key: Box::default(),
        seal: None,
    };
    let extents = reader.count(16)?;
    let min_len = usize::from(reader.u16()?);
    let max_len = usize::from(reader.u16()?);
    if version == SEALED_VERSION {
        run.seal = Some(Seal::decode(&reader.array()?));
    }
    run.extents.reserve_exact(reader.fits(extents, 16)?);
    for _ in 0..extents {
        run.extents.push(Extent {
            offset: reader.u64()?,
            len: reader.u64()?,
        });
    }
    run.min_key = reader.bytes(min_len)?.into();
    run.max_key = reader.bytes(max_len)?.into();
    Ok(run)
}

fn tree(reader: &mut Reader<'_>) -> Decoded<TreeImage> {
    let id = TreeId(reader.u32()?);
    let flags = reader.u8()?;
    if flags & !(ASCENDING | POINT_LOOKUPS) != 0 || reader.u8()? != 0 {
        return Err("has flags of a tree that mean nothing");
    }
    let name_len = usize::from(reader.u16()?);
    let buckets = reader.count(BUCKET_LEN)?;
    let name = str::from_utf8(reader.bytes(name_len)?);
    let mut tree = TreeImage {
        id,
        name: name
            .map_err(|_| "has a tree whose name is not UTF-8")?
            .to_owned(),
        flags: TreeFlags {
            ascending: flags & ASCENDING != 0,
            point_lookups: flags & POINT_LOOKUPS != 0,
        },
        buckets: Vec::new(),
    };
    tree.buckets
        .reserve_exact(reader.fits(buckets, BUCKET_LEN)?);
    for _ in 0..buckets {
        tree.buckets.push(bucket(reader)?);
    }
    Ok(tree)
}

fn bucket(reader: &mut Reader<'_>) -> Decoded<BucketImage> {
    let flushed = Seq(reader.u64()?);
    let deltas = reader.count(8)?;
    let base = reader.count(8)?;
    let lo_len = usize::from(reader.u16()?);
    Ok(BucketImage {
        flushed,
        lo: reader.bytes(lo_len)?.into(),
        deltas: ids(reader, deltas)?,
        base: ids(reader, base)?,
    })
}

fn ids(reader: &mut Reader<'_>, count: usize) -> Decoded<Vec<RunId>> {
    let mut ids = Vec::with_capacity(reader.fits(count, 8)?);
    for _ in 0..count {
        ids.push(RunId(reader.u64()?));
    }
    Ok(ids)
}
