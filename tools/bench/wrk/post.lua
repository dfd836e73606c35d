-- A POST of 400 bytes to an entity resource that takes any object:
-- wrk -s post.lua http://127.0.0.1:8080/Shop.Message
local head = '{"Label":"order","Customer":"someone@example.com","Amount":1250.5,"Paid":true,"Text":"'
wrk.method = "POST"
wrk.body = head .. string.rep("x", 400 - #head - 2) .. '"}'
wrk.headers["Content-Type"] = "application/json"
