/* Tickets over restarts of their issuer (docs/protocol.md, section 25). For SPIN.
 *
 * Ticket keys outlive the issuer's program. An attacker has recorded every request with a ticket and delivers it
 * whenever he likes. What is remembered of stamps is lost in a restart.
 *
 * Asserted: no ticket makes two candidates.
 * expect base: holds (where the numbers of spent tickets outlive the program as the keys do)
 * expect FORGETS: found (an issuer that keeps them in memory alone: a second use. It makes a candidate under keys
 *   that only the holder of the fresh key share has, so nobody promotes it)
 */
#define TICKETS 2
typedef Ticket { bool given; bool requested; bool spent; bool spent_on_disk; byte used };
Ticket t[TICKETS];
byte program = 1, given;

active proctype Lan() {
    byte i;
    do
    :: given < TICKETS -> atomic { t[given].given = true; given++ }
    :: atomic {
        i = 0;
        do :: i < TICKETS - 1 -> i++ :: break od;
        if
        :: t[i].given && !t[i].requested -> t[i].requested = true
        :: t[i].requested && !t[i].spent ->
            t[i].used++;
            assert(t[i].used <= 1);
            t[i].spent = true;
            t[i].spent_on_disk = true
        :: else
        fi
    }
    :: program < 3 -> atomic {
        program++;
        i = 0;
        do
        :: i < TICKETS ->
#ifdef FORGETS
            t[i].spent = false;
#else
            t[i].spent = t[i].spent_on_disk;
#endif
            i++
        :: else -> break
        od
    }
    :: program == 3 -> break
    od
}
