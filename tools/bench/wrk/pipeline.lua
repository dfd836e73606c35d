-- Sixteen requests in one write: wrk -s pipeline.lua http://127.0.0.1:8080/Svc.Admin.Webhook
function init(args)
   local one = wrk.format("GET")
   request_bytes = string.rep(one, 16)
end

function request()
   return request_bytes
end
