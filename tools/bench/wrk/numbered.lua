-- Requests that differ in a field, as those of many clients do, one or several in a write:
-- wrk -s numbered.lua http://127.0.0.1:8080/Svc.Admin.Webhook -- 16
local KINDS = 1009
local requests = {}
local number = 0

function init(args)
   local times = tonumber(args[1]) or 1
   for kind = 1, KINDS do
      local some = {}
      for i = 1, times do
         some[i] = wrk.format("GET", nil, {["X-Request-Id"] = string.format("%08d", kind * times + i)})
      end
      requests[kind] = table.concat(some)
   end
end

function request()
   number = number % KINDS + 1
   return requests[number]
end
