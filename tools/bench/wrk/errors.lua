-- Any script's requests, with a count of the answers by status at the end:
-- wrk -s errors.lua http://127.0.0.1:8080/ThisIsNoResource
local threads = {}

function setup(thread)
   table.insert(threads, thread)
end

function init(args)
   statuses = {}
end

function response(status, headers, body)
   statuses[status] = (statuses[status] or 0) + 1
end

function done(summary, latency, requests)
   for _, thread in ipairs(threads) do
      for status, count in pairs(thread:get("statuses")) do
         print(status .. ": " .. count)
      end
   end
end
