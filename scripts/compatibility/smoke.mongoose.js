// What applications do with the object mapper mongoose; see `run`. Prints `ok NAME` or
// `FAIL NAME message`.

const assert = require('node:assert/strict');
const mongoose = require('mongoose');

const { Schema } = mongoose;

// The models of a small shop: references, subdocuments, maps, hooks, virtual fields.
function models() {
  const author = new Schema({ name: { type: String, required: true }, country: String });
  author.virtual('books', { ref: 'Book', localField: '_id', foreignField: 'author' });
  const review = new Schema({ stars: { type: Number, min: 1, max: 5 }, text: String });
  const book = new Schema(
    {
      title: { type: String, required: true, trim: true },
      isbn: { type: String, unique: true, sparse: true },
      author: { type: Schema.Types.ObjectId, ref: 'Author', index: true },
      reviews: [review],
      stock: { type: Map, of: Number },
      price: Schema.Types.Decimal128,
      tags: [String],
    },
    { timestamps: true, optimisticConcurrency: true },
  );
  book.index({ title: 1, tags: -1 });
  book.index({ tags: 1 }, { partialFilterExpression: { price: { $exists: true } } });
  book.pre('save', function () {
    this.tags.addToSet('saved');
  });
  const event = new Schema({ at: Date }, { discriminatorKey: 'kind' });
  const account = new Schema({ owner: String, balance: { type: Number, default: 0 } });
  const Event = mongoose.model('Event', event);
  return {
    Author: mongoose.model('Author', author),
    Book: mongoose.model('Book', book),
    Event,
    Click: Event.discriminator('Click', new Schema({ url: String })),
    Sale: Event.discriminator('Sale', new Schema({ amount: Number })),
    Account: mongoose.model('Account', account),
  };
}

async function checkDocuments(check, { Author, Book }) {
  await check('indexes', async () => {
    await Promise.all([Author.init(), Book.init()]);
    const names = (await Book.listIndexes()).map((index) => index.name).sort();
    assert.deepEqual(names, ['_id_', 'author_1', 'isbn_1', 'tags_1', 'title_1_tags_-1']);
    assert.deepEqual(await Book.syncIndexes(), []);
    await Book.collection.createIndex({ stray: 1 });
    assert.deepEqual(await Book.syncIndexes(), ['stray_1']);
  });
  await check('save', async () => {
    const ann = await Author.create({ name: 'Ann', country: 'NZ' });
    const book = new Book({ title: ' One ', isbn: '1', author: ann, stock: { here: 2 } });
    book.price = '12.50';
    book.reviews.push({ stars: 4, text: 'good' });
    await book.save();
    const found = await Book.findOne({ isbn: '1' });
    assert.equal(found.title, 'One');
    assert.equal(found.price.toString(), '12.50');
    assert.equal(found.stock.get('here'), 2);
    assert.deepEqual([...found.tags], ['saved']);
    assert.ok(found.createdAt instanceof Date);
    found.stock.set('there', 5);
    found.reviews.id(found.reviews[0]._id).stars = 5;
    await found.save();
    const plain = await Book.findById(found._id).lean();
    assert.deepEqual([plain.stock, plain.reviews[0].stars], [{ here: 2, there: 5 }, 5]);
    assert.equal(plain.__v, 1);
  });
  await check('validation', async () => {
    await assert.rejects(Book.create({}), (e) => e.name === 'ValidationError');
    const twice = Book.create({ title: 'again', isbn: '1' });
    await assert.rejects(twice, (e) => e.code === 11000 && e.keyPattern.isbn === 1);
    const wrong = Book.updateOne({ isbn: '1' }, { $push: { reviews: { stars: 9 } } });
    await assert.rejects(wrong.setOptions({ runValidators: true }));
  });
  await check('optimistic_concurrency', async () => {
    const [one, other] = await Promise.all([1, 2].map(() => Book.findOne({ isbn: '1' })));
    one.title = 'first';
    other.title = 'second';
    await one.save();
    await assert.rejects(other.save(), (e) => e.name === 'VersionError');
  });
  await check('populate', async () => {
    const book = await Book.findOne({ isbn: '1' }).populate('author', 'name');
    assert.equal(book.author.name, 'Ann');
    assert.equal(book.author.country, undefined);
    const ann = await Author.findOne({ name: 'Ann' }).populate({ path: 'books', select: 'isbn' });
    assert.deepEqual(ann.books.map((b) => b.isbn), ['1']);
  });
  await check('cursor_and_aggregate', async () => {
    const made = [...Array(50).keys()].map((n) => ({ title: `t${n}`, tags: [`k${n % 3}`] }));
    await Book.insertMany(made);
    let seen = 0;
    for await (const book of Book.find({ tags: /^k/ }).batchSize(7).cursor()) {
      seen += book.tags.length;
    }
    assert.equal(seen, 50);
    const groups = await Book.aggregate()
      .match({ tags: /^k/ })
      .unwind('tags')
      .group({ _id: '$tags', n: { $sum: 1 } })
      .sort('_id');
    assert.deepEqual(groups, [['k0', 17], ['k1', 17], ['k2', 16]].map(([_id, n]) => ({ _id, n })));
    const joined = await Book.aggregate([
      { $match: { isbn: '1' } },
      { $lookup: { from: 'authors', localField: 'author', foreignField: '_id', as: 'by' } },
    ]);
    assert.equal(joined[0].by[0].name, 'Ann');
  });
  await check('update_and_bulk', async () => {
    const options = { upsert: true, new: true, setDefaultsOnInsert: true };
    const made = await Book.findOneAndUpdate({ isbn: '2' }, { title: 'Two' }, options);
    assert.deepEqual([made.title, made.tags.length], ['Two', 0]);
    const done = await Book.bulkWrite([
      { insertOne: { document: { title: 'Three', isbn: '3' } } },
      { updateMany: { filter: { tags: 'k1' }, update: { $addToSet: { tags: 'more' } } } },
      { deleteMany: { filter: { tags: 'k2' } } },
    ]);
    const counts = [done.insertedCount, done.modifiedCount, done.deletedCount];
    assert.deepEqual(counts, [1, 17, 16]);
    assert.equal(await Book.countDocuments({ tags: 'more' }), 17);
    assert.deepEqual((await Book.distinct('tags')).sort(), ['k0', 'k1', 'more', 'saved']);
    const pulled = await Book.updateOne({ isbn: '1' }, { $pull: { reviews: { stars: 5 } } });
    assert.equal(pulled.modifiedCount, 1);
  });
}

async function checkModels(check, { Event, Click, Sale, Account }) {
  await check('discriminators', async () => {
    const at = new Date();
    await Event.create([{ kind: 'Click', at, url: '/a' }, { kind: 'Sale', at, amount: 3 }]);
    assert.deepEqual((await Click.find()).map((e) => e.url), ['/a']);
    const all = await Event.find().sort('kind');
    assert.ok(all[0] instanceof Click && all[1] instanceof Sale);
    assert.equal((await Sale.aggregate([{ $group: { _id: null, n: { $sum: 1 } } }]))[0].n, 1);
  });
  await check('transaction', async () => {
    const [a, b] = await Account.create([{ owner: 'a', balance: 10 }, { owner: 'b' }]);
    const move = (amount) =>
      mongoose.connection.transaction(async (session) => {
        await Account.updateOne({ _id: a._id }, { $inc: { balance: -amount } }, { session });
        b.balance += amount;
        await b.save({ session });
        const left = await Account.findById(a._id).session(session);
        assert.ok(0 <= left.balance, 'overdrawn');
      });
    await move(7);
    await assert.rejects(move(7), /overdrawn/);
    const balances = (await Account.find().sort('owner').lean()).map((x) => x.balance);
    assert.deepEqual(balances, [3, 7]);
  });
  await check('session', async () => {
    const session = await Account.startSession();
    session.startTransaction();
    await Account.create([{ owner: 'c' }], { session });
    assert.equal(await Account.exists({ owner: 'c' }), null);
    await session.abortTransaction();
    await session.endSession();
    assert.equal(await Account.exists({ owner: 'c' }), null);
  });
}

async function main() {
  await mongoose.connect(process.argv[2], { dbName: 'smoke_mongoose' });
  await mongoose.connection.dropDatabase();
  const check = async (name, act) => {
    try {
      await act();
      console.log('ok', name);
    } catch (error) {
      console.log('FAIL', name, String(error.message).replaceAll('\n', ' '));
    }
  };
  const all = models();
  await checkDocuments(check, all);
  await checkModels(check, all);
  await mongoose.disconnect();
}

main().catch((error) => {
  console.log('FAIL connect', error.message);
  process.exit(1);
});
