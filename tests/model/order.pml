/* One order of records among three nodes around etcd (docs/design/model.md).
 *
 * etcd is one object whose transactions are atomic. Everything else may go wrong at any moment: a
 * request is late or lost, so is its answer, the lease ends, a node dies, or stands still for as
 * long as it likes, which is what the order of steps leaves open. A batch that is sent again is
 * another copy of the same; each may be carried out at any later time, in any order.
 *
 * The asserts are what is promised:
 *   one order            a place in the log is written once, without a gap, and each node's journal
 *                        is the log's beginning
 *   nothing lost         what was acknowledged is in the log
 *   nothing refused      what was refused is not in the log, then or later
 *   deposed, silent      what a node began is committed in its own epoch only, so that who was
 *                        deposed acknowledges nothing that came after
 *
 * Each -D of these leaves something out, and must be found: NO_EPOCH, NO_RANGE, TIMEOUT_REFUSES,
 * EARLY_ANSWERS, KEEPS_MEMORY. REACHED_ACKNOWLEDGED and REACHED_REFUSED say that nothing much ever
 * happens, which must be found wrong too. */

#define NODES 3
#define BATCHES 3
#define ELECTIONS 3
#define COPIES 2  /* on their way at once */
#define RESENDS 1 /* in all */
#define CRASHES 1

/* What a client was told of a batch. */
#define UNTOLD 0
#define ACKNOWLEDGED 1
#define REFUSED 2

typedef copy {
    byte batch; /* 0: none */
    byte from, epoch, serial
}

/* etcd */
byte key_epoch; /* of the key `leader`; 0: it is not there */
byte elections;
byte log[BATCHES];
byte log_end;

copy copies[COPIES];
chan answers[NODES] = [1] of { byte, bool };

byte told[BATCHES + 1];
byte next_batch = 1;
byte resends, crashes;

byte memory_end[NODES];  /* records in what the node answers reads from */
byte journal_end[NODES]; /* and in its journal: the log's first ones */
byte my_epoch[NODES]; /* 0: it follows */
byte open[NODES];     /* the batch whose answer it awaits; 0: none */

inline send(n, b, s)
{
    if
    :: copies[0].batch == 0 ->
        copies[0].batch = b; copies[0].from = n; copies[0].epoch = my_epoch[n]; copies[0].serial = s
    :: else ->
        if
        :: copies[1].batch == 0 ->
            copies[1].batch = b; copies[1].from = n; copies[1].epoch = my_epoch[n];
            copies[1].serial = s
        :: else -> skip /* lost */
        fi
    fi
}

inline clear(i)
{
    copies[i].batch = 0; copies[i].from = 0; copies[i].epoch = 0; copies[i].serial = 0
}

/* The memory is the journal's again, or should be. */
inline forget(n)
{
#ifndef KEEPS_MEMORY
    memory_end[n] = journal_end[n];
#endif
    open[n] = 0;
    my_epoch[n] = 0
}

inline commit(i)
{
    assert(log[copies[i].serial] == 0);            /* one order: written once */
    assert(copies[i].serial == log_end);           /* and without a gap */
    assert(told[copies[i].batch] != REFUSED);      /* nothing refused */
    assert(copies[i].epoch == key_epoch);          /* deposed, silent */
    log[copies[i].serial] = copies[i].batch;
    log_end = copies[i].serial + 1
}

/* The transaction: if the epoch is still this one, and there is no log key at or above this serial,
 * then put; else the answer shows what is there. */
inline carry_out(i)
{
    is_good = true;
#ifndef NO_EPOCH
    is_good = is_good && key_epoch == copies[i].epoch;
#endif
#ifndef NO_RANGE
    is_good = is_good && log_end <= copies[i].serial;
#endif
    if
    :: is_good -> commit(i)
    :: else -> is_good = log[copies[i].serial] == copies[i].batch
    fi;
    if
    :: open[copies[i].from] == copies[i].batch && nfull(answers[copies[i].from]) ->
        answers[copies[i].from]!copies[i].batch, is_good
    :: true -> skip /* the answer is lost, or nobody waits for it */
    fi;
    clear(i);
    is_good = false
}

active proctype etcd()
{
    bool is_good;

end:
    do
    :: atomic { copies[0].batch != 0 -> carry_out(0) }
    :: atomic { copies[1].batch != 0 -> carry_out(1) }
    :: atomic { copies[0].batch != 0 -> clear(0) } /* the request is lost */
    :: atomic { copies[1].batch != 0 -> clear(1) }
    :: atomic { key_epoch != 0 -> key_epoch = 0 } /* the lease ends */
    od
}

inline refuse(n)
{
    assert(told[open[n]] != ACKNOWLEDGED); /* nothing lost */
    told[open[n]] = REFUSED;
    forget(n)
}

inline hear(n)
{
    if
    :: batch != open[n] -> skip /* of a copy that nobody waits for any more */
    :: batch == open[n] && is_good ->
        assert(log[journal_end[n]] == batch); /* one order, and nothing lost */
#ifdef REACHED_ACKNOWLEDGED
        assert(my_epoch[n] < 2 || batch < 3);
#endif
        told[batch] = ACKNOWLEDGED;
        journal_end[n]++;
        open[n] = 0
    :: batch == open[n] && !is_good ->
#ifdef REACHED_REFUSED
        assert(told[1] != ACKNOWLEDGED);
#endif
        refuse(n)
    fi;
    batch = 0;
    is_good = false
}

inline begin(n)
{
    open[n] = next_batch;
    send(n, next_batch, memory_end[n]);
#ifdef EARLY_ANSWERS
    told[next_batch] = ACKNOWLEDGED;
#endif
    memory_end[n]++;
    next_batch++
}

/* What comes next in the log comes next here too. */
inline follow(n)
{
    assert(memory_end[n] == journal_end[n]);
    memory_end[n]++;
    journal_end[n]++
}

/* Nodes are called by the order in which they are first elected: those who never were are alike.
 *
 * A node may be elected before it has read the log to its end: what it was told of that may be old.
 * Then its first batch is refused. */
active[NODES] proctype node()
{
    byte n = _pid - 1;
    byte batch;
    bool is_good;

end:
    do
    :: atomic { my_epoch[n] == 0 && journal_end[n] < log_end -> follow(n) }
    :: atomic {
        my_epoch[n] == 0 && key_epoch == 0 && elections < ELECTIONS && n <= elections ->
            elections++;
            key_epoch = elections;
            if
            :: true -> my_epoch[n] = key_epoch
            :: true -> skip /* the answer is lost: the lease will end */
            fi
       }
    :: atomic {
        my_epoch[n] != 0 && open[n] == 0 && next_batch <= BATCHES && memory_end[n] < BATCHES ->
            begin(n)
       }
    :: atomic { my_epoch[n] != 0 && open[n] == 0 -> my_epoch[n] = 0 } /* its lease is past */
#ifdef TIMEOUT_REFUSES
    :: atomic { open[n] != 0 -> refuse(n) }
#else
    :: atomic {
        open[n] != 0 && resends < RESENDS ->
            resends++;
            send(n, open[n], journal_end[n])
       }
#endif
    :: atomic { answers[n]?batch, is_good -> hear(n) }
    :: atomic {
        crashes < CRASHES && my_epoch[n] != 0 ->
            crashes++;
            memory_end[n] = journal_end[n];
            open[n] = 0;
            my_epoch[n] = 0
       }
    od
}
