-- Raises an event a request, numbered: wrk -s event.lua http://127.0.0.1:8080/Svc.Event
-- Make a webhook for it first, with the event selector /Shop.OrderPlaced/Amount>100.
local number = 0

function request()
   number = number + 1
   local body = '{"Resource":"Shop.OrderPlaced","Payload":{"OrderNo":' .. number ..
      ',"Customer":"someone@example.com","Amount":1250.5,"Country":"NO"}}'
   return wrk.format("POST", nil, {["Content-Type"] = "application/json"}, body)
end
