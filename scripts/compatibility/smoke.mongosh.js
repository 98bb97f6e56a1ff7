// What people type into mongosh; see `run`. Prints `ok NAME` or `FAIL NAME message`.
/* global db, rs, print */

function check(name, act) {
  try {
    act();
    print('ok ' + name);
  } catch (error) {
    print('FAIL ' + name + ' ' + String(error.message).replaceAll('\n', ' '));
  }
}

function equal(a, b) {
  const [left, right] = [JSON.stringify(a), JSON.stringify(b)];
  if (left !== right) {
    throw new Error(left + ' is not ' + right);
  }
}

const d = db.getSiblingDB('smoke_shell');
d.dropDatabase();
check('insert', () => {
  const documents = [...Array(30).keys()].map((i) => ({ _id: i, n: i }));
  equal(Object.keys(d.a.insertMany(documents).insertedIds).length, 30);
});
check('find', () => equal(d.a.find({ n: { $gt: 27 } }).sort({ n: 1 }).toArray().length, 2));
check('iterate', () => equal(d.a.find().toArray().length, 30));
check('update', () => equal(d.a.updateMany({}, { $inc: { n: 1 } }).modifiedCount, 30));
check('delete', () => equal(d.a.deleteOne({ _id: 3 }).deletedCount, 1));
check('bulk', () => {
  const done = d.a.bulkWrite([{ deleteOne: { filter: { _id: 4 } } }]);
  equal(done.deletedCount, 1);
});
check('index', () => equal(d.a.createIndex({ n: 1 }), 'n_1'));
check('explain', () => {
  const plan = d.a.find({ n: 7 }).explain('executionStats');
  equal(plan.executionStats.nReturned, 1);
});
check('aggregate', () => equal(d.a.aggregate([{ $count: 'c' }]).toArray(), [{ c: 28 }]));
check('show_collections', () => equal(d.getCollectionNames(), ['a']));
check('stats', () => equal(d.stats().ok, 1));
check('collection_stats', () => equal(d.a.stats().count, 28));
check('validate', () => equal(d.a.validate().valid, true));
check('server_status', () => equal(db.serverStatus().ok, 1));
check('replica_set', () => {
  equal(rs.status().ok, 1);
  equal(rs.conf().members.length, 1);
});
check('current_op', () => equal(db.currentOp().ok, 1));
check('transaction', () => {
  const session = db.getMongo().startSession();
  session.startTransaction();
  session.getDatabase('smoke_shell').a.insertOne({ _id: 't' });
  session.commitTransaction();
  equal(d.a.countDocuments({ _id: 't' }), 1);
});
check('unknown_command', () => {
  let code = 0;
  try {
    d.runCommand({ nonsense: 1 });
  } catch (error) {
    code = error.code;
  }
  equal(code, 59);
});
