-- The read-only transaction as the laboratory does it, for sysbench: whole rows, and what to add
-- up, sort or make distinct is left to the client. One table a transaction, of those that the
-- laboratory made.

require("oltp_common")

function prepare_statements()
   begin_statement = con:prepare("START TRANSACTION READ ONLY")
   commit_statement = con:prepare("COMMIT")
   points, ranges = {}, {}
   for t = 1, sysbench.opt.tables do
      local columns = "SELECT id, k, c, pad FROM romanesco_lab_sbtest" .. t
      local get = con:prepare(columns .. " WHERE id = ?")
      local range = con:prepare(columns .. " WHERE id >= ? AND id <= ? ORDER BY id")
      local int = sysbench.sql.type.INT
      points[t] = {get, get:bind_create(int)}
      ranges[t] = {range, range:bind_create(int), range:bind_create(int)}
      get:bind_param(points[t][2])
      range:bind_param(ranges[t][2], ranges[t][3])
   end
end

-- oltp_common closes what it made itself; the connection ends with ours.
function close_statements()
end

function event()
   local t = sysbench.rand.uniform(1, sysbench.opt.tables)
   local size = sysbench.opt.table_size
   begin_statement:execute()
   for _ = 1, 10 do
      points[t][2]:set(sysbench.rand.uniform(1, size))
      points[t][1]:execute()
   end
   for _ = 1, 4 do
      local from = sysbench.rand.uniform(1, size)
      ranges[t][2]:set(from)
      ranges[t][3]:set(math.min(from + 99, size))
      ranges[t][1]:execute()
   end
   commit_statement:execute()
end
