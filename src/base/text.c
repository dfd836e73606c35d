typedef int svc_empty_text;
