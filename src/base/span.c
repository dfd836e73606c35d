typedef int svc_empty_span;
