typedef int svc_empty_literal;
