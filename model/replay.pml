/* What Verifpal cannot do: time, memory and restarts. For SPIN (model/run.sh).
 *
 * The responder's judgement of freshness (docs/protocol.md, section 11, "Freshness"), with everything that a
 * host signed recorded by an attacker who delivers it as often as he likes, also after the responder restarted and
 * lost stamps, cached answers and the secret of its cookies. A step of time is 15 s, the epoch of a cookie.
 *
 * Asserted: no request that was signed once makes a second candidate.
 * expect base: holds (also over restarts)
 * expect NO_COOKIE: found (a responder that believes what it cannot judge: a replay after its restart)
 * expect SHORT_CACHE: found (an accepted request is forgotten before its cookie is: a second candidate)
 * expect CLOCK_BACK: found (a responder that starts with a clock that is behind takes a recording for new. It makes a
 *   candidate, under which nothing is sent and which nobody promotes)
 */
#define TOLERANCE 2 /* shortened from 8, so that the search ends; what matters is that it is longer than an epoch */
#define END 8
#define SIGNED 3
#ifdef SHORT_CACHE
#define CACHED 1
#else
#define CACHED 2 /* 30 s */
#endif

typedef Request { bool made; byte nonce; byte time; byte life; byte epoch; bool cookie; byte accepted; bool cached; byte cached_at };
Request r[SIGNED];
byte made;
byte now = TOLERANCE + 1; /* true time */
byte life = 1;            /* of the responder: its cookie secret */
byte start;               /* its clock when it started */
byte behind;              /* its clock is so much behind */
bool known;               /* is there a last stamp? */
byte last_time, last_nonce;
bool answered;            /* a challenge is there that the initiator may answer */
byte challenge_life, challenge_epoch, nonce;

#define wall (now - behind)
#define newer(i) ((known && r[i].time > last_time) || (!known && r[i].time > start + TOLERANCE))
#define near(i) (r[i].time <= wall + TOLERANCE && wall <= r[i].time + TOLERANCE)

inline take(i) {
    r[i].accepted++;
    assert(r[i].accepted <= 1);
    r[i].cached = true;
    r[i].cached_at = now;
    if
    :: !known || last_time <= r[i].time -> known = true; last_time = r[i].time; last_nonce = r[i].nonce
    :: else
    fi
}

inline judge(i) {
    if
    :: r[i].cached && now - r[i].cached_at < CACHED -> skip /* the same answer again */
    :: else ->
        if
        :: known && last_nonce == r[i].nonce && r[i].time <= last_time -> skip /* stale */
        :: else ->
            if
            :: r[i].cookie ->
                if
                :: r[i].life == life && (r[i].epoch == now || r[i].epoch + 1 == now) -> take(i)
                :: else -> challenge_life = life; challenge_epoch = now; answered = false
                fi
            :: else ->
                if
                :: newer(i) && near(i) -> take(i)
#ifdef NO_COOKIE
                :: !known && near(i) -> take(i)
#endif
                :: else -> challenge_life = life; challenge_epoch = now; answered = false
                fi
            fi
        fi
    fi
}

inline sign(with_cookie) {
    r[made].made = true;
    r[made].nonce = nonce;
    r[made].time = now;
    r[made].cookie = with_cookie;
    r[made].life = challenge_life;
    r[made].epoch = challenge_epoch;
    made++
}

active proctype Lan() {
    byte i;
    start = now;
    do
    /* Time passes. */
    :: now < END -> atomic { now++ }
    /* The initiator asks anew, or answers the newest challenge with the same nonce. */
    :: made < SIGNED -> atomic { nonce++; answered = true; sign(false) }
    :: made > 0 && made < SIGNED && !answered && challenge_life > 0 -> atomic { answered = true; sign(true) }
    /* The attacker, or the wire, delivers anything that was ever signed. */
    :: atomic { i = 0; do :: i < SIGNED - 1 -> i++ :: break od; if :: r[i].made -> judge(i) :: else fi }
    /* The responder restarts. */
    :: life < 3 -> atomic {
        life++;
        known = false;
        i = 0;
        do :: i < SIGNED -> r[i].cached = false; i++ :: else -> break od;
#ifdef CLOCK_BACK
        behind = 3;
#endif
        start = wall
    }
    :: now == END -> break
    od
}
