typedef int svc_empty_decimal;
