typedef int svc_empty_reader;
