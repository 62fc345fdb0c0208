//! What a cluster can go through. These tests run one after another, each with a cluster of its own.

#[path = "proxy.rs"]
mod proxy;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use authority::directory::Sharing;
use authority::limits::{ETCD_CONNECT_TIMEOUT, ETCD_REQUEST_TIMEOUT, ETCD_ROUNDS};
use authority::repository::etcd::Access;
use authority::repository::{EtcdStore, HostEntry, NewHost, SqliteStore, Standing, Store, StoreError};
use ringwall_lab::net::etcd::{Cluster, MEMBERS};
use rustix::process::Signal;
use wire::MacAddress;

use self::proxy::Proxy;
use crate::rules::{host, open_token};
use crate::{repository, run_for};

const NOW_UNIX_S: u64 = 1_800_000_000;
const SITE: &str = "lab";
/// How long a cluster may take to choose a leader or to take a member back, with room for a loaded machine.
const HEALED_MAX: Duration = Duration::from_secs(20);

static TURN: Mutex<()> = Mutex::new(());

/// Runs `body` beside a new cluster.
fn with_cluster(test: &str, body: impl FnOnce(Cluster)) {
    let Some(run) = run_for(test) else { return };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let cluster = Cluster::start(run, "f", Ipv4Addr::LOCALHOST, None, |_| Ok(())).expect("a cluster");
    cluster.move_here().expect("entered");
    body(cluster);
}

/// A host of its own name and addresses for each number.
fn one_of_many(number: usize) -> NewHost {
    let [.., high, low] = number.to_be_bytes();
    NewHost {
        mac: Some(MacAddress([2, 0, 0, 1, high, low])),
        addresses: vec![Ipv4Addr::new(10, 9, high, low)],
        ..host(&format!("host-{number}"), 1)
    }
}

/// Ends what runs beside a test, also if the test fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Result<T, StoreError>) -> T {
    let began_at = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(began_at.elapsed() < HEALED_MAX, "{what}: {error}"),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |quarter: usize| times[(times.len() - 1) * quarter / 4];
    let (least, [first, middle, third], most) = (at(0), [at(1), at(2), at(3)], at(4));
    let count = times.len();
    eprintln!("{what}: {count} times, min {least:?}, quartiles {first:?}, {middle:?}, {third:?}, max {most:?}");
}

/// Shows what a question and a change take in the cluster, and in a file in the same moments.
fn compare(cluster: &dyn Store) {
    const TIMES: usize = 200;
    let place = tempfile::tempdir().expect("directory");
    let file = SqliteStore::create(&place.path().join("hosts.db")).expect("created");
    let stores: [(&str, &dyn Store); 2] = [("the cluster", cluster), ("a file", &file)];
    let mut times = [(); 2].map(|()| [(); 2].map(|()| Vec::new()));
    for number in 0..TIMES {
        for (at, (_, store)) in stores.iter().enumerate() {
            let began_at = Instant::now();
            store.add(&one_of_many(number), Sharing::Refused, NOW_UNIX_S).expect("added");
            times[at][0].push(began_at.elapsed());
            let began_at = Instant::now();
            assert!(store.find(one_of_many(number).addresses[0]).expect("asked").is_some());
            times[at][1].push(began_at.elapsed());
        }
    }
    for ((name, _), [adds, finds]) in stores.iter().zip(times) {
        show(&format!("add in {name}"), adds);
        show(&format!("find in {name}"), finds);
    }
}

/// Broke `Snapshot::commit` by leaving out the comparisons: numbers came twice and turns of the key were lost.
#[test]
fn writers_of_two_programs_lose_nothing() {
    const THREADS: usize = 3;
    const EACH: usize = 8;
    with_cluster("writers_of_two_programs_lose_nothing", |cluster| {
        let stores = [repository(&cluster, SITE), EtcdStore::new(&cluster.access(), SITE).expect("an access")];
        let shared = NewHost { key: vec![0], ..host("shared", 200) };
        let shared_ip = shared.addresses[0];
        stores[0].add(&shared, Sharing::Refused, NOW_UNIX_S).expect("added");
        let work = |store: &EtcdStore, first: usize| {
            for number in first..first + EACH {
                store.add(&one_of_many(number), Sharing::Refused, NOW_UNIX_S).expect("added");
                while !{
                    let key = store.find(shared_ip).expect("asked").expect("there").key;
                    store.replace_key(shared_ip, &key, 1, &[key[0] + 1]).expect("changed")
                } {}
                if number % 2 == 0 {
                    assert_eq!(store.revoke(&format!("host-{number}")), Ok(true));
                }
            }
        };
        thread::scope(|scope| {
            for (at, store) in stores.iter().enumerate() {
                for thread in 0..THREADS {
                    scope.spawn(move || work(store, (at * THREADS + thread) * EACH));
                }
            }
        });
        let listed = stores[1].list().expect("listed");
        let all = 2 * THREADS * EACH;
        let numbers: Vec<u64> = listed.iter().map(|host| host.number).collect();
        assert_eq!(numbers, (1..=1 + all as u64).collect::<Vec<_>>());
        assert_eq!(listed[0].key, [u8::try_from(all).expect("small")]);
        for number in 0..all {
            let standing = if number % 2 == 0 { Standing::Revoked } else { Standing::Good };
            let found = stores[0].find(one_of_many(number).addresses[0]).expect("asked").expect("there");
            assert_eq!((found.name, found.standing), (format!("host-{number}"), standing));
        }
    });
}

/// Broke `EtcdStore::index` by leaving an index as it is where the host stands in it already: a host that was revoked came
/// back to its address while another one got it.
#[test]
fn an_address_goes_to_one_of_two_who_want_it_at_once() {
    const ROUNDS: usize = 40;
    with_cluster("an_address_goes_to_one_of_two_who_want_it_at_once", |cluster| {
        let stores = [repository(&cluster, SITE), EtcdStore::new(&cluster.access(), SITE).expect("an access")];
        for round in 0..ROUNDS {
            // By turns both are new, or one is revoked and comes back.
            let name = |which: usize| format!("host-{round}-{which}");
            let asked = |which| NewHost { name: name(which), ..one_of_many(round) };
            if round % 2 == 0 {
                stores[0].add(&asked(0), Sharing::Refused, NOW_UNIX_S).expect("added");
                stores[0].revoke(&name(0)).expect("revoked");
            }
            let outcomes: Vec<_> = thread::scope(|scope| {
                let add = |at: usize| stores[at].add(&asked(at), Sharing::Refused, NOW_UNIX_S);
                let asking = [0, 1].map(|at| scope.spawn(move || add(at)));
                asking.into_iter().map(|thread| thread.join().expect("asked")).collect()
            });
            let winners: Vec<usize> = (0..2).filter(|at| outcomes[*at].is_ok()).collect();
            assert_eq!(winners.len(), 1, "round {round}: {outcomes:?}");
            let found = stores[0].find(one_of_many(round).addresses[0]).expect("asked").map(|host| host.name);
            assert_eq!(found, Some(name(winners[0])));
        }
    });
}

/// Two distributors, one of which gives a host more time while the other finds its time over: one of them gets the address,
/// and only he is told so. Broke `Snapshot::commit` by not comparing leases: both were told.
#[test]
fn a_lease_at_its_end_is_prolonged_or_passed_on() {
    const ROUNDS: u64 = 40;
    with_cluster("a_lease_at_its_end_is_prolonged_or_passed_on", |cluster| {
        let stores = [repository(&cluster, SITE), EtcdStore::new(&cluster.access(), SITE).expect("an access")];
        let [one, two] = [("one", 1), ("two", 2)]
            .map(|(name, last)| stores[0].add(&host(name, last), Sharing::Refused, NOW_UNIX_S).expect("added"));
        let leased = Ipv4Addr::new(10, 0, 1, 7);
        let mut prolonged = 0;
        for round in 1..=ROUNDS {
            let end = NOW_UNIX_S + 100 * round;
            stores[0].lease(one, leased, end, end - 50).expect("leased");
            let outcomes = thread::scope(|scope| {
                let keeps = scope.spawn(|| stores[0].lease(one, leased, end + 50, end));
                let takes = scope.spawn(|| stores[1].lease(two, leased, end + 50, end + 1));
                [keeps, takes].map(|thread| thread.join().expect("asked").is_ok())
            });
            let holder = stores[1].find(leased).expect("asked").expect("somebody").number;
            let holds = |number| {
                let entry = stores[0].by_number(number).expect("asked").expect("there");
                entry.addresses.contains(&leased)
            };
            assert_eq!([holds(one), holds(two)], [holder == one, holder == two], "round {round}: {outcomes:?}");
            assert_eq!(outcomes, [holder == one, holder == two], "round {round}");
            prolonged += u64::from(holder == one);
            assert_eq!(stores[0].unbind(holder, leased), Ok(true));
        }
        eprintln!("prolonged {prolonged} of {ROUNDS} times");
    });
}

/// Broke `Client::order` by asking the first member only: nothing went on when that was killed.
#[test]
fn what_was_acknowledged_outlives_any_member() {
    with_cluster("what_was_acknowledged_outlives_any_member", |mut cluster| {
        let store = repository(&cluster, SITE);
        let reader = EtcdStore::new(&cluster.access(), SITE).expect("an access");
        compare(&repository(&cluster, "compared"));
        let (is_over, written) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (reads, writes) = thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let mut times = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let (number, began_at) = (written.load(Ordering::Relaxed), Instant::now());
                    eventually("a write", || store.add(&one_of_many(number), Sharing::Refused, NOW_UNIX_S));
                    times.push(began_at.elapsed());
                    written.store(number + 1, Ordering::Release);
                }
                times
            });
            let reading = scope.spawn(|| {
                let mut times = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    // What was acknowledged to one is there for the other.
                    let Some(last) = written.load(Ordering::Acquire).checked_sub(1) else { continue };
                    let began_at = Instant::now();
                    let found = eventually("a read", || reader.find(one_of_many(last).addresses[0]));
                    times.push(began_at.elapsed());
                    assert_eq!(found.map(|host| host.name), Some(format!("host-{last}")));
                }
                times
            });
            let ending = Ending(&is_over);
            // One of them leads.
            for member in 0..MEMBERS {
                cluster.kill_member(member);
                let reached = written.load(Ordering::Relaxed) + 5;
                let began_at = Instant::now();
                while written.load(Ordering::Relaxed) < reached {
                    assert!(began_at.elapsed() < HEALED_MAX, "writes go on without member {member}");
                    thread::sleep(Duration::from_millis(10));
                }
                cluster.start_member(member).expect("started");
                thread::sleep(Duration::from_secs(1));
            }
            drop(ending);
            (reading.join().expect("reads"), writing.join().expect("writes"))
        });
        show("find while each member was killed once", reads);
        show("add while each member was killed once", writes);
        let numbers: Vec<u64> = store.list().expect("listed").iter().map(|host| host.number).collect();
        assert_eq!(numbers, (1..=written.into_inner() as u64).collect::<Vec<_>>());
    });
}

/// Broke `Client::new` by leaving `timeout_global` out: members were waited for as long as they liked.
#[test]
fn without_a_majority_there_is_a_named_error_in_bounded_time_and_then_it_heals() {
    let longest = ETCD_REQUEST_TIMEOUT * u32::try_from(ETCD_ROUNDS * MEMBERS).expect("small") + Duration::from_secs(1);
    let refused = |access: &Access, longest: Duration| {
        for change in [false, true] {
            // One that was not refused before: what failed a moment ago is not tried again.
            let store = EtcdStore::new(access, SITE).expect("an access");
            let began_at = Instant::now();
            let outcome =
                if change { store.revoke("alpha").map(drop) } else { store.find([10, 0, 0, 1].into()).map(drop) };
            let error = outcome.expect_err("nobody can answer");
            let took = began_at.elapsed();
            eprintln!("after {took:?}: {error}");
            assert!(matches!(error.reason(), StoreError::Unreachable(_)), "{error}");
            assert!(error.to_string().contains("etcd at http://127.0.0.1:2379") && took < longest, "{took:?}: {error}");
        }
    };
    with_cluster("without_a_majority_there_is_a_named_error_in_bounded_time", |mut cluster| {
        let store = repository(&cluster, SITE);
        store.add(&host("alpha", 1), Sharing::Refused, NOW_UNIX_S).expect("added");
        cluster.kill_member(0);
        cluster.kill_member(1);
        refused(
            &cluster.access(),
            ETCD_REQUEST_TIMEOUT * u32::try_from(ETCD_ROUNDS).expect("small") + Duration::from_secs(1),
        );
        cluster.start_member(1).expect("started");
        let began_at = Instant::now();
        assert_eq!(eventually("healing", || store.find([10, 0, 0, 1].into())).map(|host| host.number), Some(1));
        assert!(eventually("healing", || store.revoke("alpha")));
        eprintln!("healed after {:?}", began_at.elapsed());
        cluster.start_member(0).expect("started");
        cluster.await_service().expect("whole again");
        (0..MEMBERS).for_each(|member| cluster.signal(member, Signal::STOP));
        refused(&cluster.access(), longest);
        (0..MEMBERS).for_each(|member| cluster.signal(member, Signal::CONT));
        eventually("healing", || store.find([10, 0, 0, 1].into()));
    });
}

/// Broke `EtcdStore::attempt` by forgetting the change whose answer was lost: the key was changed and the answer was "no".
#[test]
fn a_lost_answer_changes_neither_the_outcome_nor_the_state() {
    with_cluster("a_lost_answer_changes_neither_the_outcome_nor_the_state", |cluster| {
        let direct = repository(&cluster, SITE);
        let proxy = Proxy::start(2379);
        let members = vec![format!("http://127.0.0.1:{}", proxy.port())];
        let store = EtcdStore::new(&Access { members, ..Access::default() }, SITE).expect("an access");
        let ip = [10, 0, 0, 1].into();
        let leased = [10, 0, 1, 7].into();
        proxy.lose(1);
        assert_eq!(store.add(&host("alpha", 1), Sharing::Refused, NOW_UNIX_S), Ok(1));
        proxy.lose(1);
        assert_eq!(store.add(&host("beta", 2), Sharing::Refused, NOW_UNIX_S), Ok(2));
        proxy.lose(1);
        assert_eq!(store.replace_key(ip, &[1; 32], 1, &[7; 32]), Ok(true));
        proxy.lose(1);
        assert_eq!(store.bind(1, leased, NOW_UNIX_S), Ok(()));
        proxy.lose(1);
        assert_eq!(store.unbind(1, leased), Ok(true));
        proxy.lose(1);
        assert_eq!(store.revoke("beta"), Ok(true));
        for until in [NOW_UNIX_S + 60, NOW_UNIX_S + 600] {
            proxy.lose(1);
            assert_eq!(store.lease(1, leased, until, NOW_UNIX_S), Ok(()));
        }
        assert_eq!(direct.lease(1, leased, NOW_UNIX_S + 100, NOW_UNIX_S + 90), Ok(()), "it has more already");
        // The answer to the end of a lease may be lost, too.
        proxy.lose(1);
        assert_eq!(store.add(&host("gamma", 3), Sharing::Refused, NOW_UNIX_S + 601), Ok(3));
        assert_eq!(direct.find(leased), Ok(None));
        assert_eq!(proxy.lost(), 9);
        let hosts: Vec<_> = direct.list().expect("listed").into_iter().map(|host| (host.number, host.key[0])).collect();
        assert_eq!(hosts, [(1, 7), (2, 2), (3, 3)]);
    });
}

/// What remains of a host once its only lease is over.
fn entry_without_lease(hosts: &[HostEntry], number: u64) -> HostEntry {
    let mut host = hosts.iter().find(|host| host.number == number).expect("there").clone();
    host.addresses.truncate(1);
    host
}

/// Broke `EtcdStore::create` by writing the form first, and not comparing it afterwards: a reader saw a part.
#[test]
fn hosts_are_moved_in_whole_or_not_at_all() {
    const HOSTS: usize = 1200;
    with_cluster("hosts_are_moved_in_whole_or_not_at_all", |cluster| {
        let place = tempfile::tempdir().expect("directory");
        let file = SqliteStore::create(&place.path().join("hosts.db")).expect("created");
        for number in 0..HOSTS {
            file.add(&one_of_many(number), Sharing::Refused, NOW_UNIX_S).expect("added");
        }
        file.add(&NewHost { name: "heir".to_owned(), ..one_of_many(3) }, Sharing::Allowed, NOW_UNIX_S).expect("added");
        file.revoke("host-7").expect("revoked");
        let until = NOW_UNIX_S + 60;
        for number in 10..70u8 {
            let outcome = file.lease(u64::from(number), [10, 0, 1, number].into(), until, NOW_UNIX_S);
            outcome.expect("leased");
        }
        let token = open_token(7);
        assert_eq!(file.change_enrolment(None, Some(&token)), Ok(true));
        let contents = file.contents().expect("listed");
        let hosts = &contents.hosts;
        assert_eq!((hosts.len(), contents.leases.len()), (HOSTS + 1, 60));
        let [store, reader] = [(); 2].map(|()| EtcdStore::new(&cluster.access(), SITE).expect("an access"));
        let is_over = AtomicBool::new(false);
        let seen = thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let mut seen = BTreeSet::new();
                while !is_over.load(Ordering::Relaxed) {
                    seen.insert(reader.list().map_or_else(
                        |error| {
                            assert_eq!(error.reason(), &StoreError::NotShared);
                            0
                        },
                        |hosts| hosts.len(),
                    ));
                }
                seen
            });
            let ending = Ending(&is_over);
            store.create(&contents).expect("moved");
            drop(ending);
            reading.join().expect("reads")
        });
        assert!(seen.contains(&0) && seen.iter().all(|count| [0, hosts.len()].contains(count)), "{seen:?}");
        assert_eq!(reader.list(), Ok(hosts.clone()));
        assert_eq!(reader.contents(), Ok(contents.clone()), "what moved in can move out");
        assert_eq!(reader.enrolment(7), Ok(Some(token)));
        assert_eq!(reader.find(one_of_many(3).addresses[0]), file.find(one_of_many(3).addresses[0]));
        let next = reader.add(&one_of_many(HOSTS + 1), Sharing::Refused, until);
        assert_eq!(next, Ok(hosts.len() as u64 + 1));
        assert_eq!(reader.find([10, 0, 1, 69].into()).expect("asked").map(|host| host.number), Some(69));
        // What was lent there ends here.
        assert_eq!(reader.lease(1, [10, 0, 1, 69].into(), until + 60, until + 1), Ok(()));
        assert_eq!(reader.by_number(69).expect("asked"), Some(entry_without_lease(hosts, 69)));
        let again = store.create(&contents).expect_err("there is one");
        assert_eq!(again.reason(), &StoreError::SharedExists);
    });
}

/// Broke `Client::send` by not noting who answered: each question waited anew. And left `timeout_connect` out: the first one
/// took as long as a whole request may.
#[test]
fn a_member_that_is_switched_off_keeps_only_the_first_question_waiting() {
    with_cluster("a_member_that_is_switched_off_keeps_only_the_first_question_waiting", |cluster| {
        repository(&cluster, SITE);
        // What is sent there is gone without a word, as with a machine without power.
        for words in [
            "link add d0 type veth peer name d1",
            "address add 10.97.0.1/24 dev d0",
            "link set d0 up",
            "link set d1 up",
            "neighbour add 10.97.0.9 lladdr 02:00:00:00:00:99 dev d0",
        ] {
            cluster.namespace().ip(words).expect(words);
        }
        let mut access = cluster.access();
        access.members.insert(0, "http://10.97.0.9:2379".to_owned());
        let store = EtcdStore::new(&access, SITE).expect("an access");
        let times = [(); 3].map(|()| {
            let began_at = Instant::now();
            assert_eq!(store.find([10, 0, 0, 1].into()), Ok(None));
            began_at.elapsed()
        });
        eprintln!("with a member that is switched off: {times:?}");
        assert!(times[0] >= ETCD_CONNECT_TIMEOUT && times[0] < ETCD_REQUEST_TIMEOUT, "{times:?}");
        assert!(times[1..].iter().all(|time| *time < ETCD_CONNECT_TIMEOUT), "{times:?}");
    });
}
