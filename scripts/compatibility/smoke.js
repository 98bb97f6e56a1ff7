// What applications do with the Node driver; see `run`. Prints `ok NAME` or `FAIL NAME message`.

const assert = require('node:assert/strict');
const { MongoClient } = require('mongodb');

async function main() {
  const client = await new MongoClient(process.argv[2]).connect();
  const db = client.db('smoke_node');
  await db.dropDatabase();
  const a = db.collection('a');
  const check = async (name, act) => {
    try {
      await act();
      console.log('ok', name);
    } catch (error) {
      console.log('FAIL', name, String(error.message).replaceAll('\n', ' '));
    }
  };
  await check('insert', async () => {
    const documents = [...Array(500).keys()].map((i) => ({ _id: i, n: i, g: i % 5 }));
    assert.equal((await a.insertMany(documents)).insertedCount, 500);
  });
  await check('find', async () => {
    const found = await a.find({ n: { $gt: 495 } }).project({ n: 1 }).sort({ n: -1 }).toArray();
    assert.deepEqual(found.map((d) => d.n), [499, 498, 497, 496]);
    assert.equal((await a.find().batchSize(7).toArray()).length, 500);
  });
  await check('update', async () => {
    const done = await a.updateMany({ g: 1 }, { $inc: { n: 1000 } });
    assert.deepEqual([done.matchedCount, done.modifiedCount], [100, 100]);
    const upserted = await a.updateOne({ _id: 'u' }, { $set: { k: 1 } }, { upsert: true });
    assert.equal(upserted.upsertedId, 'u');
  });
  await check('find_and_modify', async () => {
    const options = { returnDocument: 'after' };
    const after = await a.findOneAndUpdate({ _id: 1 }, { $set: { x: 1 } }, options);
    assert.equal(after.x, 1);
  });
  await check('delete', async () => {
    assert.equal((await a.deleteOne({ _id: 3 })).deletedCount, 1);
    assert.equal((await a.deleteMany({ g: 4 })).deletedCount, 100);
  });
  await check('bulk_write', async () => {
    const done = await a.bulkWrite([
      { insertOne: { document: { _id: 'q' } } },
      { updateOne: { filter: { _id: 'q' }, update: { $set: { n: 1 } } } },
      { deleteOne: { filter: { _id: 2 } } },
      { deleteMany: { filter: { _id: { $in: [5, 6, 'q'] } } } },
    ]);
    const counts = [done.insertedCount, done.modifiedCount, done.deletedCount];
    assert.deepEqual(counts, [1, 1, 4]);
  });
  await check('aggregate', async () => {
    const groups = [{ $group: { _id: '$g', c: { $sum: 1 } } }, { $sort: { _id: 1 } }];
    const found = await a.aggregate([{ $match: { g: 0 } }, ...groups]).toArray();
    assert.deepEqual(found, [{ _id: 0, c: 99 }]);
  });
  await check('index', async () => {
    assert.equal(await a.createIndex({ n: 1 }), 'n_1');
    const plan = await a.find({ n: 7 }).explain('executionStats');
    assert.equal(plan.executionStats.totalKeysExamined, 1);
    const refused = a.insertOne({ _id: 7 });
    await assert.rejects(refused, (error) => error.code === 11000);
  });
  await check('transaction', async () => {
    await client.withSession((session) =>
      session.withTransaction(async () => {
        await a.insertOne({ _id: 't' }, { session });
        await db.collection('new').insertOne({ _id: 't' }, { session });
        assert.equal(await db.collection('new').findOne({ _id: 't' }), null);
      }),
    );
    assert.notEqual(await db.collection('new').findOne({ _id: 't' }), null);
  });
  await check('snapshot_session', async () => {
    await client.withSession({ snapshot: true }, async (session) => {
      const before = await a.countDocuments({}, { session });
      await a.insertOne({ _id: 's' });
      assert.equal(await a.countDocuments({}, { session }), before);
    });
  });
  await check('administration', async () => {
    const names = (await db.listCollections().toArray()).map((c) => c.name);
    assert.ok(names.includes('a'));
    assert.equal((await db.stats()).ok, 1);
  });
  await client.close();
}

main().catch((error) => {
  console.log('FAIL connect', error.message);
  process.exit(1);
});
