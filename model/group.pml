/* Frames to groups over time and restarts (docs/protocol.md, section 21, "Proof of an incarnation"). For SPIN.
 *
 * A sender makes frames, which an attacker records and delivers as often and as late as he likes. The receiver takes a
 * frame only after the sender has answered its question, and then only what is newer than the time in the
 * answer less the time for which the receiver already remembered, 2 s at most. A step of time is 1 s.
 *
 * Asserted: no frame is delivered twice, also not to a receiver that restarted in between.
 * expect base: holds
 * expect NO_QUESTION: found (a receiver that believes the first frame it hears: a replay after its restart)
 * expect ALWAYS_2S: found (one that takes what is 2 s older than the answer, however long it has been up)
 */
#define FRAMES 3
#define END 6
typedef Frame { bool made; byte time; byte counter; byte incarnation; byte delivered };
Frame f[FRAMES];
byte made, counter;
byte now = 2;
byte sender = 1;     /* incarnation */
byte receiver = 1;   /* its run */
byte since = 2;      /* it remembers from here on */
byte proved;         /* the incarnation it has proved */
byte last_time, last_counter;
byte asked;          /* when it first sent the open question; 0: none */
byte announced, announced_of;

#define AGE_MAX 2
#ifdef ALWAYS_2S
#define age AGE_MAX
#else
#define age ((asked - since < AGE_MAX) -> (asked - since) : AGE_MAX)
#endif
#define newer(i) (f[i].time > last_time || (f[i].time == last_time && f[i].counter > last_counter))

inline hear(i) {
    if
    :: proved == f[i].incarnation && newer(i) ->
        f[i].delivered++;
        assert(f[i].delivered <= 1);
        last_time = f[i].time; last_counter = f[i].counter
    :: proved != f[i].incarnation && asked == 0 ->
#ifdef NO_QUESTION
        proved = f[i].incarnation; last_time = 0; last_counter = 0
#else
        asked = now; announced = 0
#endif
    :: else
    fi
}

/* The answer counts if it says more than what is known of this incarnation. */
inline believe() {
    if
    :: proved != announced_of || last_time < announced - age ->
        last_time = announced - age;
        last_counter = 255
    :: else
    fi;
    proved = announced_of; asked = 0; announced = 0
}

active proctype Lan() {
    byte i;
    do
    :: now < END -> atomic { now++; counter = 0 }
    :: made < FRAMES -> atomic {
        f[made].made = true; f[made].time = now; f[made].counter = counter; f[made].incarnation = sender;
        counter++; made++
    }
    :: atomic { i = 0; do :: i < FRAMES - 1 -> i++ :: break od; if :: f[i].made -> hear(i) :: else fi }
    /* The sender answers the open question now; the wire brings it whenever it likes. */
    :: asked > 0 && announced == 0 -> atomic { announced = now; announced_of = sender }
    :: asked > 0 && announced > 0 -> atomic { believe() }
    :: sender < 2 -> atomic { sender++ }
    :: receiver < 3 -> atomic {
        receiver++; since = now; proved = 0; last_time = 0; last_counter = 0; asked = 0; announced = 0
    }
    :: now == END -> break
    od
}
