-- sysbench's own oltp_read_write. Each thread counts the errors after which it began a transaction again, and prints them at
-- its end: sysbench itself adds all of them up as "ignored errors".

require("oltp_read_write")

local restarts = {}
local before_restart_event = sysbench.hooks.before_restart_event
local thread_done_before = thread_done

function sysbench.hooks.before_restart_event(err)
   restarts[err.sql_errno] = (restarts[err.sql_errno] or 0) + 1
   if before_restart_event then
      before_restart_event(err)
   end
end

function thread_done()
   local text = "restarts:"
   for errno, count in pairs(restarts) do
      text = text .. " " .. errno .. "=" .. count
   end
   -- One write: threads end at the same time, and sysbench prints its report meanwhile.
   io.stderr:write(text .. "\n")
   thread_done_before()
end
