typedef int svc_empty_journal;
