# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ringwall_global_optspecs
    string join \n log-json h/help V/version
end

function __fish_ringwall_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ringwall_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ringwall_using_subcommand
    set -l cmd (__fish_ringwall_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ringwall -n "__fish_ringwall_needs_command" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_needs_command" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_needs_command" -s V -l version -d 'Print version'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "join" -d 'Makes this machine a guarded host of a site: enrols, configures, tries, and keeps what is good (needs root)'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "leave" -d 'Undoes \'ringwall join\': gives the interface back, in clear, and removes units and configuration (needs root)'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "site" -d 'The authority of a site: who belongs to it'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "operate" -d 'Gives the site\'s service an order, as an operator of the site: a command of \'ringwall site\''
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "host" -d 'Guards one interface of this host'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "akd" -d 'Distributes the site\'s keys to hosts that speak S-ARP'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "gate" -d 'Scrubs what passes between two networks, or a capture of it'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "shield" -d 'Layered nonces in front of an IPsec stack: forged packets end before it'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "status" -d 'How the daemon is: what is wrong and what to do, then everything else'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "doctor" -d 'What is around the daemons of this machine: one line and one remedy each, nothing is changed'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "why" -d 'What keeps this host and HOST apart, or in clear, or that all is well'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "top" -d 'How the daemons of this machine are, again and again: drops per second by reason, peers, attacks, connections, certificates'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "console" -d 'Pages for a browser about the daemons of this machine: health, peers, attacks, history, certificates, gateway (needs root)'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "peers" -d 'Associations with other hosts'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "events" -d 'What happened lately'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "history" -d 'What happened before: attacks, changes, and who had which address when'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "explain" -d 'Why frames were dropped, and what to do about it'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "forecast" -d 'Who would be cut off, and which uses of the network, if this host enforced now'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "report" -d 'Tells the site\'s service how this host is, and fetches what the site has signed since (needs root)'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "metrics" -d 'What Prometheus scrapes, in its text format'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "config" -d 'Looks at the configuration'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l token-file -d 'A file that holds the token' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l interface -d 'The interface; without it that of the default route' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l config -d 'The configuration file; without it /etc/ringwall/INTERFACE.toml' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l state-dir -d 'What must be known to give the interface back' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l run-dir -d 'Lock and socket of the daemon' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l identity -d 'Where the identity is, or is written to' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l mode -d 'How the site guards its hosts: cll (every frame sealed) or sarp (ARP signed)' -r -f -a "cll\t''
sarp\t''"
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l migration -d 'What a host of mode cll does with frames in clear: observe (without this; nothing is refused yet), prefer or enforce' -r -f -a "observe\t''
prefer\t''
enforce\t''"
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l append -d 'A file of further sections for the configuration, such as the legacy.toml of `site import`' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l service -d 'Enrol over the site\'s service at this address and port, and not by key distributors. The host reports and renews there from then on' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l ip -d 'An IPv4 address that this host would like, if the token says none; without it those that the interface has' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l peer -d 'A host that must answer after the start, beside gateway and name servers; repeat it for several' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l name-server -d 'A name server to try in the place of those of /etc/resolv.conf; repeat it for several' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l timeout -d 'How long the manager may take to approve: 30s, 5m, 1h, 2d' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l revert-after -d 'When the interface is given back if this command ends before it has confirmed' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l no-units -d 'Leave systemd alone: start or end the daemon, and enable or disable nothing'
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l force -d 'Replace another identity and another configuration that are there'
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l dry-run -d 'Say what would be done, and change nothing'
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l yes -d 'Do not ask on a terminal whether to go on'
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l json -d 'Print one JSON object at the end'
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand join" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand leave" -l interface -d 'The interface; without it that of the default route' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand leave" -l config -d 'The configuration file; without it /etc/ringwall/INTERFACE.toml' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand leave" -l state-dir -d 'What must be known to give the interface back' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand leave" -l run-dir -d 'Lock and socket of the daemon' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand leave" -l no-units -d 'Leave systemd alone: start or end the daemon, and enable or disable nothing'
complete -c ringwall -n "__fish_ringwall_using_subcommand leave" -l forget -d 'Remove the identity as well, and all that the daemon has kept; the host needs another token to come back'
complete -c ringwall -n "__fish_ringwall_using_subcommand leave" -l dry-run -d 'Say what would be done, and change nothing'
complete -c ringwall -n "__fish_ringwall_using_subcommand leave" -l yes -d 'Do not ask on a terminal whether to go on'
complete -c ringwall -n "__fish_ringwall_using_subcommand leave" -l json -d 'Print one JSON object at the end'
complete -c ringwall -n "__fish_ringwall_using_subcommand leave" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand leave" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "init" -d 'Make a new site: its authority, its site key and an empty record'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "renew-authority" -d 'Give the authority another certificate for its key, before or after the one that it has ends'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "issue" -d 'Issue a certificate to a host'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "renew" -d 'Give a host another certificate for the key that it has, with what its newest one says'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "list" -d 'List every certificate that the site has issued'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "revoke" -d 'Take a host out'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "token" -d 'Make tokens by which hosts join over the network'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "survey" -d 'Propose what is on the network: hosts, printers, routers, and addresses that two have'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "import" -d 'Make tokens and a legacy list of a table, as \'ringwall site survey --csv\' writes it'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "pending" -d 'List the tokens that are open, and who applies with them'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "approve" -d 'Issue a certificate to a host that applies with a token'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "refuse" -d 'Refuse a host that applies with a token, or end a token'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "rekey" -d 'Give a host another key, because somebody else may have the one it has'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "rekey-shared" -d 'Change the keys that hosts share, because somebody else may have them'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "backup" -d 'Write the whole site to one new file: keys, record and repository'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "restore" -d 'Make a site again from its backup, in a directory that is missing or empty'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "recover" -d 'Take back from hosts what the site did after the backup that it was restored from'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "policy" -d 'Decide for all hosts at once who is admitted in clear, and how strict each is'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "serve" -d 'Run the service that hosts report to and fetch the policy and the revocation list from (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "signer" -d 'Sign for the site\'s service: renewals, and what tokens were preapproved for (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "audit" -d 'Show what was done with the authority and by whom, or look whether that record is whole'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "hosts" -d 'List all enrolled hosts with what they have reported: mode, policy, attacks, certificate'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "forecast" -d 'Say who would be cut off, and which uses of the network, if hosts enforced now'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "enforce" -d 'Have a group enforce on trial, and for good if every host of it goes on reporting'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "operator" -d 'Say who may give the site\'s service orders, and which (\'ringwall operate\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "repository" -d 'Choose where the repository of hosts is kept: in a file, or in a cluster of etcd that several distributors share'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and not __fish_seen_subcommand_from init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from init" -l dir -d 'Where the site shall be kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from init" -l name -d 'Name of the site: letters, digits, dots, hyphens, underscores' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from init" -l days -d 'How long the authority lasts' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from init" -l profile -d 'Which algorithms its hosts work with: modern, or paper (those of the papers, to measure their tables; never for real use)' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from init" -l key -d 'Keep the authority\'s key in a token that never gives it out: a URI (RFC 7512) with token, object, module-path and pin-source, and x-files where the token is kept in files. A key that is not there yet is made' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from init" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from init" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew-authority" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew-authority" -l days -d 'How long the authority lasts from now on' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew-authority" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew-authority" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew-authority" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l request -d 'The host\'s request; without it the host\'s key is made here' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l name -d 'Name of the host' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l mac -d 'Hardware address of the host\'s interface' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l ip -d 'An IPv4 address of the host; repeat it for several' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l ip6 -d 'An IPv6 address that is the host\'s and nobody else\'s, whoever claims it; repeat it for several' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l subnet -d 'A subnet in which the host may be given an address by DHCP, as 10.0.0.0/24; repeat it for several' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l serves -d 'For a DHCP server of mode "cll": a subnet in which it gives addresses, each with a certificate, as 10.0.0.128/25; repeat it for several. It can make certificates for no other addresses, so name its pool and not the whole network' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l role -d 'What the host may do: host, router, akd (a key distributor of S-ARP) or dhcp (a DHCP server)' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l days -d 'How long the certificate lasts' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l dsa-bits -d 'In a site of the paper profile, the length of the host\'s DSA key: 512 or 1024, which is what it gets without this' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l rsa-bits -d 'In a site of the paper profile, an RSA key for mode cll instead of the DSA key, of 1024, 1536 or 2048 bits' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l rsa-hash -d 'What that RSA key hashes with: sha1, sha256 or ripemd160' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l out -d 'Where the identity, or the bundle for a request, is written' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l force -d 'Replace the output file if it exists'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l allow-shared-addresses -d 'Let several hosts hold one address'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from issue" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew" -l request -d 'The host\'s request; - reads it from the standard input' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew" -l out -d 'Where the answer is written, sealed for the host; - writes it to the standard output, and nothing else' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew" -l days -d 'How long the certificate lasts' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew" -l early -d 'Issue another certificate even if the newest one is in its first half. Without it the host gets that one again, since such a request may be a recorded one'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew" -l force -d 'Replace the output file if it exists'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from renew" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from list" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from list" -l all -d 'Also those that are over for more than a month and were followed by another one'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from list" -l json -d 'Print a list of JSON objects'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from list" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from revoke" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from revoke" -l name -d 'Name of the host' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from revoke" -l keep-shared-keys -d 'Leave the site key as it is, although the host has it'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from revoke" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from revoke" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from revoke" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l name -d 'Name that the host gets' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l csv -d 'A table of hosts, a token for each: columns name, mac, ip, subnet, role, as `site survey --csv` writes it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l mac -d 'Hardware address that must ask; any may without it, and `site pending` shows which did' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l ip -d 'An IPv4 address that the host gets; repeat it for several. Without --ip and --subnet it gets those that it asks for' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l subnet -d 'A subnet in which the host may be given an address by DHCP, as 10.0.0.0/24; repeat it for several' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l out -d 'A directory for the tokens, each in a file NAME.token that only root reads' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l out-csv -d 'A table for the tokens, which only root reads' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l role -d 'What the host may do: host, router, akd (a key distributor of S-ARP) or dhcp (a DHCP server)' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l days -d 'How long the certificate lasts' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l valid -d 'How long the token serves: 30m, 24h, 7d' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l preapproved -d 'Approve beforehand whoever applies first, with the token, from the hardware address that it is for'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l by-service -d 'For hosts that enrol over the site\'s service (`ringwall join --service`); no key distributor is needed then'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from token" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from survey" -l dnsmasq -d 'Leases of dnsmasq; repeat it for several. Without this and --kea those of this machine' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from survey" -l kea -d 'Leases of Kea (kea-leases4.csv); repeat it for several' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from survey" -l neigh -d 'What `ip neigh` prints on another machine; repeat it for several' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from survey" -l table -d 'A table that there is already: what it says of a hardware address stays; repeat it for several' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from survey" -l listen -d 'Listen for ARP on --interface for so long: 30s, 5m; sends nothing, and needs root' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from survey" -l interface -d 'Where to listen' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from survey" -l oui -d 'The IEEE\'s list of makers; without it that of Debian\'s ieee-data, if it is there' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from survey" -l without-neighbours -d 'Leave out the neighbours of this machine'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from survey" -l csv -d 'Print a table that `site import` and `site token --csv` take'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from survey" -l json -d 'Print a list of JSON objects'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from survey" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from survey" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from import" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from import" -l out -d 'A directory for the tokens and the legacy list' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from import" -l days -d 'How long certificates last' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from import" -l valid -d 'How long the tokens serve: 30m, 24h, 7d' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from import" -l by-service -d 'Hosts enrol over the site\'s service (`ringwall join --service`)'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from import" -l policy -d 'Put printers and routers into the site\'s policy as well, for all hosts at once; a site whose policy has no group yet begins in observe'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from import" -l dry-run -d 'Say what would be made, and make nothing'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from import" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from import" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from pending" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from pending" -l json -d 'Print a list of JSON objects'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from pending" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from pending" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from approve" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from approve" -l fingerprint -d 'The fingerprint that the host shows; another one is not approved' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from approve" -l all -d 'All who apply with a token that was preapproved'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from approve" -l watch -d 'The same, and go on with whoever applies later, until it is ended'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from approve" -l allow-shared-addresses -d 'Let several hosts hold one address'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from approve" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from approve" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from approve" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from refuse" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from refuse" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from refuse" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from refuse" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey" -l request -d 'The request that the host made with a new key; without it a token is made' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey" -l out -d 'Where the bundle for the request is written' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey" -l days -d 'How long the certificate lasts' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey" -l valid -d 'How long the token serves: 30m, 24h, 7d' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey" -l force -d 'Replace the output file if it exists'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey-shared" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey-shared" -l after -d 'How long hosts have to fetch the new key before anybody sends with it' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey-shared" -l grace -d 'How long the one before is still accepted then' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey-shared" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey-shared" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from rekey-shared" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from backup" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from backup" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from backup" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from backup" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from restore" -l dir -d 'Where the site shall be kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from restore" -l key -d 'The token that has the authority\'s key, as for `site init`; it may be another than the one of then, with the same key' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from restore" -l repository-in-file -d 'Keep the repository in a file even if it was in etcd: the cluster is lost'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from restore" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from restore" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from restore" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from recover" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from recover" -l identity -d 'The identity of a host that has later site keys than the site: these are taken as well' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from recover" -l apply -d 'Take it; without this it is only shown'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from recover" -l anyway -d 'Also while most hosts have not reported'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from recover" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from recover" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from recover" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from policy" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from policy" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from policy" -f -a "show" -d 'Show the policy in force'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from policy" -f -a "legacy" -d 'Hosts that all others admit in clear, such as printers'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from policy" -f -a "known" -d 'Hosts without signed ARP that hosts of mode sarp know by the policy'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from policy" -f -a "exception" -d 'Hosts towards which all others are otherwise strict'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from policy" -f -a "mode" -d 'Say how strict the hosts of a group are: observe, prefer or enforce; none takes the group out'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from policy" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from serve" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from serve" -l identity -d 'The identity that hosts see: that of this machine, or one of its own' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from serve" -l listen -d 'Where to listen, an address and a port; repeat it for several. Without it: port 9478 of each address that the identity\'s certificate has' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from serve" -l signer -d 'Where `ringwall site signer` is asked, for renewals and enrolments; while nobody answers there these are refused, and hosts try again' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from serve" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from signer" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from signer" -l socket -d 'The socket at which the site\'s service asks' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from signer" -l days -d 'How long a certificate lasts that is renewed' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from signer" -l late -d 'How long after the end of its certificate a host that was away is renewed all the same' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from signer" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from signer" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from audit" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from audit" -l last -l limit -d 'The last so many entries alone' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from audit" -l before -d 'Entries before the one of this number alone' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from audit" -l about -d 'Entries about this host or thing alone' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from audit" -l operator -d 'What this operator has ordered over the service alone' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from audit" -l refused -d 'In their place the orders that operators were refused: for each operator and command the first and the last one, and how many there were'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from audit" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from audit" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from audit" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from audit" -f -a "verify" -d 'Look whether it is whole'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from audit" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from hosts" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from hosts" -l after -d 'The hosts behind this name, to go on where a brief answer ended' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from hosts" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from hosts" -l brief -d 'With --json, some facts of each host in the place of its report, and 5,000 hosts at most'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from hosts" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from hosts" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from forecast" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from forecast" -l group -d 'Of this group of the policy alone, as \'site policy show\' writes it' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from forecast" -l since -d 'What was heard within this time: 30s, 5m, 1h, 7d' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from forecast" -l json -d 'Print one JSON object'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from forecast" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from forecast" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from enforce" -l for -d 'How long the trial is, 5 minutes at least: 15m, 1h' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from enforce" -l except -d 'A hardware address that may be cut off, such as an attacker\'s; the forecast is judged without it. Repeat it for several' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from enforce" -l since -d 'What was heard within this time counts in the forecast: 30s, 5m, 1h, 7d' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from enforce" -l dir -d 'Where the site is kept' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from enforce" -l anyway -d 'Also where the forecast says that something would break, or is not complete'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from enforce" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from enforce" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from operator" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from operator" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from operator" -f -a "add" -d 'Make somebody an operator, or give him another role, and write the file for him'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from operator" -f -a "request" -d 'Make a key on one\'s own machine, and a request for the manager'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from operator" -f -a "list" -d 'List all operators'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from operator" -f -a "remove" -d 'Put one out; nothing that he orders is done from now on'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from operator" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from repository" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from repository" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from repository" -f -a "import" -d 'Move the hosts from the file into a cluster of etcd, and work with that from now on'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from repository" -f -a "use" -d 'Work with the repository that is in a cluster already, or reach it in another way'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from repository" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "init" -d 'Make a new site: its authority, its site key and an empty record'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "renew-authority" -d 'Give the authority another certificate for its key, before or after the one that it has ends'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "issue" -d 'Issue a certificate to a host'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "renew" -d 'Give a host another certificate for the key that it has, with what its newest one says'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "list" -d 'List every certificate that the site has issued'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "revoke" -d 'Take a host out'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "token" -d 'Make tokens by which hosts join over the network'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "survey" -d 'Propose what is on the network: hosts, printers, routers, and addresses that two have'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "import" -d 'Make tokens and a legacy list of a table, as \'ringwall site survey --csv\' writes it'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "pending" -d 'List the tokens that are open, and who applies with them'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "approve" -d 'Issue a certificate to a host that applies with a token'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "refuse" -d 'Refuse a host that applies with a token, or end a token'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "rekey" -d 'Give a host another key, because somebody else may have the one it has'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "rekey-shared" -d 'Change the keys that hosts share, because somebody else may have them'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "backup" -d 'Write the whole site to one new file: keys, record and repository'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "restore" -d 'Make a site again from its backup, in a directory that is missing or empty'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "recover" -d 'Take back from hosts what the site did after the backup that it was restored from'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "policy" -d 'Decide for all hosts at once who is admitted in clear, and how strict each is'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Run the service that hosts report to and fetch the policy and the revocation list from (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "signer" -d 'Sign for the site\'s service: renewals, and what tokens were preapproved for (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "audit" -d 'Show what was done with the authority and by whom, or look whether that record is whole'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "hosts" -d 'List all enrolled hosts with what they have reported: mode, policy, attacks, certificate'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "forecast" -d 'Say who would be cut off, and which uses of the network, if hosts enforced now'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "enforce" -d 'Have a group enforce on trial, and for good if every host of it goes on reporting'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "operator" -d 'Say who may give the site\'s service orders, and which (\'ringwall operate\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "repository" -d 'Choose where the repository of hosts is kept: in a file, or in a cluster of etcd that several distributors share'
complete -c ringwall -n "__fish_ringwall_using_subcommand site; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand operate" -l service -d 'Where the site\'s service listens' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand operate" -l service-name -d 'The name in its certificate, where that has another address' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand operate" -l as -d 'The operator\'s file' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand operate" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand operate" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and not __fish_seen_subcommand_from run confirm release reload forget enroll renew help" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and not __fish_seen_subcommand_from run confirm release reload forget enroll renew help" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and not __fish_seen_subcommand_from run confirm release reload forget enroll renew help" -f -a "run" -d 'Guards the interface until it is told to stop (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and not __fish_seen_subcommand_from run confirm release reload forget enroll renew help" -f -a "confirm" -d 'Keeps the interface guarded after `run --revert-after`'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and not __fish_seen_subcommand_from run confirm release reload forget enroll renew help" -f -a "release" -d 'Stops the daemon, if one runs, and gives the interface back to the stack, in clear (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and not __fish_seen_subcommand_from run confirm release reload forget enroll renew help" -f -a "reload" -d 'Reads the configuration again: mode of migration, exceptions and management machines, without a pause'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and not __fish_seen_subcommand_from run confirm release reload forget enroll renew help" -f -a "forget" -d 'Forgets that a host has proved itself, so that it may speak in clear again in mode prefer'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and not __fish_seen_subcommand_from run confirm release reload forget enroll renew help" -f -a "enroll" -d 'Makes this host\'s key, asks the authority for a certificate, and installs the answer: by token, or by file'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and not __fish_seen_subcommand_from run confirm release reload forget enroll renew help" -f -a "renew" -d 'Gets another certificate for the key that this host has, before the one it has ends'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and not __fish_seen_subcommand_from run confirm release reload forget enroll renew help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from run" -l config -d 'Configuration file' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from run" -l revert-after -d 'Gives the interface back after this time unless `ringwall host confirm` is run before, even if the daemon dies: 30s, 5m, 1h' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from run" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from confirm" -l config -d 'Configuration file' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from confirm" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from confirm" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from release" -l config -d 'Configuration file' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from release" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from release" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from reload" -l config -d 'Configuration file' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from reload" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from reload" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from forget" -l config -d 'Configuration file' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from forget" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from forget" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -l token -d 'The token that the manager made; - reads it from the standard input, where no other user sees it' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -l interface -d 'The interface; without it the one that the configuration names' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -l service -d 'Enrol over the site\'s service at this address and port, and not by key distributors' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -l ip -d 'An IPv4 address that this host would like, if the token says none; repeat it for several' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -l out -d 'Where the identity is written; without it where the configuration says, else /etc/ringwall/identity.pem' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -l timeout -d 'How long to wait for the manager: 30s, 5m, 1h (the default), 2d' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -l config -d 'Configuration file, if there is one already' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -l force -d 'Replace the identity if there is one, and forget an enrolment by another token that was not finished'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -l json -d 'Print one JSON object when all is done'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -f -a "request" -d 'Make a key and a request for the manager'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -f -a "install" -d 'Open the bundle that came back and put the key and it together'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from enroll" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from renew" -l config -d 'Configuration file' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from renew" -l through -d 'A shell\'s command that reads the request and writes the answer; without it the one of host.renew_through, or the site\'s service (site.service)' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from renew" -l before -d 'Renew only what ends within this time, without it host.renew_before. What lasts less than twice as long is renewed in its second half' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from renew" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from renew" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from renew" -f -a "request" -d 'Write a request for another certificate, signed with the key that this host has'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from renew" -f -a "install" -d 'Put the bundle that came back into the identity file, and have the daemon take it'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from renew" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "run" -d 'Guards the interface until it is told to stop (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "confirm" -d 'Keeps the interface guarded after `run --revert-after`'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "release" -d 'Stops the daemon, if one runs, and gives the interface back to the stack, in clear (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "reload" -d 'Reads the configuration again: mode of migration, exceptions and management machines, without a pause'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "forget" -d 'Forgets that a host has proved itself, so that it may speak in clear again in mode prefer'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "enroll" -d 'Makes this host\'s key, asks the authority for a certificate, and installs the answer: by token, or by file'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "renew" -d 'Gets another certificate for the key that this host has, before the one it has ends'
complete -c ringwall -n "__fish_ringwall_using_subcommand host; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand akd; and not __fish_seen_subcommand_from run help" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand akd; and not __fish_seen_subcommand_from run help" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand akd; and not __fish_seen_subcommand_from run help" -f -a "run" -d 'Guards the interface like `host run` and answers the site\'s hosts from the repository (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand akd; and not __fish_seen_subcommand_from run help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand akd; and __fish_seen_subcommand_from run" -l config -d 'Configuration file' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand akd; and __fish_seen_subcommand_from run" -l revert-after -d 'As with `host run`' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand akd; and __fish_seen_subcommand_from run" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand akd; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand akd; and __fish_seen_subcommand_from help" -f -a "run" -d 'Guards the interface like `host run` and answers the site\'s hosts from the repository (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand akd; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and not __fish_seen_subcommand_from run release flows block respond handover replay rules help" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and not __fish_seen_subcommand_from run release flows block respond handover replay rules help" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and not __fish_seen_subcommand_from run release flows block respond handover replay rules help" -f -a "run" -d 'Scrubs all that passes between two interfaces until it is told to stop (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and not __fish_seen_subcommand_from run release flows block respond handover replay rules help" -f -a "release" -d 'Stops the daemon, if one runs, and gives the interfaces back (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and not __fish_seen_subcommand_from run release flows block respond handover replay rules help" -f -a "flows" -d 'Lists TCP connections through the gateway'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and not __fish_seen_subcommand_from run release flows block respond handover replay rules help" -f -a "block" -d 'Ends a TCP connection through the gateway for both sides and lets none begin in its place'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and not __fish_seen_subcommand_from run release flows block respond handover replay rules help" -f -a "respond" -d 'Ends the TCP connections that an intrusion detection system condemns in its EVE records'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and not __fish_seen_subcommand_from run release flows block respond handover replay rules help" -f -a "handover" -d 'Has the other gateway of a pair take over, as before an update of this one'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and not __fish_seen_subcommand_from run release flows block respond handover replay rules help" -f -a "replay" -d 'Scrubs a capture file'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and not __fish_seen_subcommand_from run release flows block respond handover replay rules help" -f -a "rules" -d 'Lists the rules: what each does, what it can break, and in which presets it is on'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and not __fish_seen_subcommand_from run release flows block respond handover replay rules help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from run" -l trusted -d 'Interface towards the hosts that are protected' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from run" -l untrusted -d 'Interface towards everybody else' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from run" -l mirror -d 'Interface that gets a copy of all that leaves, both ways' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from run" -l preset -d 'Which rules are on: paper, balanced or strict' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from run" -l config -d 'Configuration file; without it /etc/ringwall/gate.toml if that is there' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from run" -l null -d 'Puts the null bump in the scrubber\'s place: same ports, nothing is looked at. For benchmarks'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from run" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from release" -l trusted -d 'The trusted interface of the gateway, where no file names it' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from release" -l config -d 'Configuration file; without it /etc/ringwall/gate.toml if that is there' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from release" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from release" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from flows" -l config -d 'Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from flows" -l interface -d 'The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from flows" -l address -d 'Connections of this host only' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from flows" -l state -d 'Connections in this state only, such as established' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from flows" -l limit -d 'How many at most, up to 10000' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from flows" -l json -d 'Prints JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from flows" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from flows" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from block" -l config -d 'Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from block" -l interface -d 'The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from block" -l vlan -d 'VLAN identifiers of the connection, as `gate flows` shows them' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from block" -l json -d 'Prints JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from block" -l undo -d 'Lets the connection begin again'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from block" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from block" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from respond" -l config -d 'Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from respond" -l interface -d 'The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from respond" -l eve-socket -d 'A Unix socket that is made here and that Suricata connects to (`filetype: unix_stream`)' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from respond" -l eve -d 'EVE records from a file, or from the standard input if it is -, to the end' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from respond" -l severity -d 'Alerts of this severity and worse; 1 is the worst' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from respond" -l signature -d 'Alerts of this signature (may be given several times)' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from respond" -l dry-run -d 'Says what would be ended, and ends nothing'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from respond" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from respond" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from handover" -l config -d 'Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from handover" -l interface -d 'The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from handover" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from handover" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l read -d 'The capture to read, pcap or pcapng, also compressed by gzip or zstd; - for the standard input' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l write -d 'Where what leaves is written; - for the standard output. A name that ends in .pcap or .pcapng says the format, otherwise it is that of the capture' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l explain -d 'Writes a pcapng of all frames with a comment on each that was changed, held or dropped: by which rule, for which reason' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l diff -d 'Shows the frames of one flow before and after: addresses and ports of its two ends, in any order' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l trusted -d 'Addresses of the trusted side, such as 192.0.2.0/24; may be given several times' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l trusted-mac -d 'Hardware addresses of the trusted side\'s hosts or router' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l trusted-interface -d 'Interfaces of a pcapng capture that are on the trusted side, by number from 0' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l preset -d 'Which rules are on: paper, balanced or strict' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l config -d 'Takes sections [gate] and [shares] of this file' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l null -d 'Switches every rule off: what remains is reading and writing, the yardstick of measurements'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l verify-checksums -d 'Drops frames whose checksum is only begun, which otherwise count as right'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l json -d 'Prints the report as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from replay" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from rules" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from rules" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from help" -f -a "run" -d 'Scrubs all that passes between two interfaces until it is told to stop (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from help" -f -a "release" -d 'Stops the daemon, if one runs, and gives the interfaces back (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from help" -f -a "flows" -d 'Lists TCP connections through the gateway'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from help" -f -a "block" -d 'Ends a TCP connection through the gateway for both sides and lets none begin in its place'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from help" -f -a "respond" -d 'Ends the TCP connections that an intrusion detection system condemns in its EVE records'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from help" -f -a "handover" -d 'Has the other gateway of a pair take over, as before an update of this one'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from help" -f -a "replay" -d 'Scrubs a capture file'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from help" -f -a "rules" -d 'Lists the rules: what each does, what it can break, and in which presets it is on'
complete -c ringwall -n "__fish_ringwall_using_subcommand gate; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and not __fish_seen_subcommand_from run keys help" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and not __fish_seen_subcommand_from run keys help" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and not __fish_seen_subcommand_from run keys help" -f -a "run" -d 'Guards the IPsec stack behind the interface like `host run` (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and not __fish_seen_subcommand_from run keys help" -f -a "keys" -d 'Makes and changes the files that both ends of a pair share'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and not __fish_seen_subcommand_from run keys help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from run" -l config -d 'Configuration file' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from run" -l revert-after -d 'As with `host run`' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from run" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from keys" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from keys" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from keys" -f -a "make" -d 'Makes the two files of a new pair, one for each end'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from keys" -f -a "next" -d 'Adds one new epoch to both files of a pair; it is not sent under yet'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from keys" -f -a "send" -d 'Sends under the newest epoch from now on, once the other end has it in its file'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from keys" -f -a "retire" -d 'Forgets the epochs before the one that is sent under, once the other end sends under it, too'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from keys" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from help" -f -a "run" -d 'Guards the IPsec stack behind the interface like `host run` (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from help" -f -a "keys" -d 'Makes and changes the files that both ends of a pair share'
complete -c ringwall -n "__fish_ringwall_using_subcommand shield; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand status" -l config -d 'Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand status" -l interface -d 'The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand status" -l json -d 'Prints JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand status" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand status" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l config -d 'Looks at the interface of this configuration; without it at those of all files in /etc/ringwall' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l json -d 'Prints JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand why" -l config -d 'Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand why" -l interface -d 'The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand why" -l no-probe -d 'Sends nothing to HOST; only what happened by itself is told'
complete -c ringwall -n "__fish_ringwall_using_subcommand why" -l json -d 'Prints JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand why" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand why" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand top" -l config -d 'Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand top" -l interface -d 'The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand top" -l interval -d 'Seconds between two looks' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand top" -l once -d 'Tells it once, after one interval for the rates, and ends; implies --plain'
complete -c ringwall -n "__fish_ringwall_using_subcommand top" -l plain -d 'Lines of text one after the other, without drawing: for screen readers and scripts'
complete -c ringwall -n "__fish_ringwall_using_subcommand top" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand top" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and not __fish_seen_subcommand_from login help" -l listen -d 'Where browsers come to: a port of this machine alone, an absolute name for a socket, or, with --identity, any address and port' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and not __fish_seen_subcommand_from login help" -l identity -d 'Speak TLS with this: the identity that the site has issued, or a certificate for web servers, the chain behind it and its key (PKCS#8) in one file' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and not __fish_seen_subcommand_from login help" -l site -d 'Show all hosts of the site, as its service there tells' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and not __fish_seen_subcommand_from login help" -l service-name -d 'The name in the service\'s certificate, where that has another address' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and not __fish_seen_subcommand_from login help" -l as -d 'The file of an operator of the site who may only look (role viewer), as whom it is asked' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and not __fish_seen_subcommand_from login help" -l run-dir -d 'Where the daemons\' command sockets are' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and not __fish_seen_subcommand_from login help" -l history -d 'The history of a daemon (records.history_file); repeat it for several. It need not be there' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and not __fish_seen_subcommand_from login help" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and not __fish_seen_subcommand_from login help" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and not __fish_seen_subcommand_from login help" -f -a "login" -d 'Prints a link that signs one person in, once, within five minutes (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and not __fish_seen_subcommand_from login help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and __fish_seen_subcommand_from login" -l run-dir -d 'Where the daemons\' command sockets are, as the console was told' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and __fish_seen_subcommand_from login" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and __fish_seen_subcommand_from login" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and __fish_seen_subcommand_from help" -f -a "login" -d 'Prints a link that signs one person in, once, within five minutes (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand console; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand peers" -l config -d 'Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand peers" -l interface -d 'The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand peers" -l json -d 'Prints JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand peers" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand peers" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand events" -l config -d 'Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand events" -l interface -d 'The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand events" -l json -d 'Prints JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand events" -s f -l follow -d 'Goes on until it is interrupted'
complete -c ringwall -n "__fish_ringwall_using_subcommand events" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand events" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand history" -l config -d 'Configuration file, whose records.history_file is read; without it /etc/ringwall/host.toml or gate.toml' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand history" -l file -d 'Reads this history instead' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand history" -l since -d 'What went on within this time: 30s, 5m, 1h, 7d' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand history" -l kind -d 'Of this kind: address, started, stopped, policy, order, or a kind of attack (docs/records.md)' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand history" -l about -d 'With this network address, hardware address or name' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand history" -l json -d 'Prints JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand history" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand history" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l config -d 'Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l interface -d 'The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l json -d 'Prints JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand forecast" -l config -d 'Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand forecast" -l interface -d 'The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand forecast" -l since -d 'What was heard within this time: 30s, 5m, 1h, 7d' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand forecast" -l json -d 'Prints JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand forecast" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand forecast" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand report" -l config -d 'Configuration file of the daemon, whose site.service says where to report' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand report" -l show -d 'Prints the report instead of sending it'
complete -c ringwall -n "__fish_ringwall_using_subcommand report" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand report" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand metrics" -l config -d 'Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand metrics" -l interface -d 'The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand metrics" -l out -d 'Writes this file instead, whole or not at all, for the textfile collector of node_exporter' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand metrics" -l open-metrics -d 'In the form of OpenMetrics 1.0 instead of Prometheus text 0.0.4'
complete -c ringwall -n "__fish_ringwall_using_subcommand metrics" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand metrics" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and not __fish_seen_subcommand_from check show help" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and not __fish_seen_subcommand_from check show help" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and not __fish_seen_subcommand_from check show help" -f -a "check" -d 'Checks the file and says what is wrong'
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and not __fish_seen_subcommand_from check show help" -f -a "show" -d 'Prints the configuration in force, defaults included'
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and not __fish_seen_subcommand_from check show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and __fish_seen_subcommand_from check" -l config -d 'Configuration file; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and __fish_seen_subcommand_from check" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and __fish_seen_subcommand_from show" -l config -d 'Configuration file; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and __fish_seen_subcommand_from show" -l log-json -d 'Writes the log as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "check" -d 'Checks the file and says what is wrong'
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "show" -d 'Prints the configuration in force, defaults included'
complete -c ringwall -n "__fish_ringwall_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "join" -d 'Makes this machine a guarded host of a site: enrols, configures, tries, and keeps what is good (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "leave" -d 'Undoes \'ringwall join\': gives the interface back, in clear, and removes units and configuration (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "site" -d 'The authority of a site: who belongs to it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "operate" -d 'Gives the site\'s service an order, as an operator of the site: a command of \'ringwall site\''
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "host" -d 'Guards one interface of this host'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "akd" -d 'Distributes the site\'s keys to hosts that speak S-ARP'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "gate" -d 'Scrubs what passes between two networks, or a capture of it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "shield" -d 'Layered nonces in front of an IPsec stack: forged packets end before it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "status" -d 'How the daemon is: what is wrong and what to do, then everything else'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "doctor" -d 'What is around the daemons of this machine: one line and one remedy each, nothing is changed'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "why" -d 'What keeps this host and HOST apart, or in clear, or that all is well'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "top" -d 'How the daemons of this machine are, again and again: drops per second by reason, peers, attacks, connections, certificates'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "console" -d 'Pages for a browser about the daemons of this machine: health, peers, attacks, history, certificates, gateway (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "peers" -d 'Associations with other hosts'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "events" -d 'What happened lately'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "history" -d 'What happened before: attacks, changes, and who had which address when'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "explain" -d 'Why frames were dropped, and what to do about it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "forecast" -d 'Who would be cut off, and which uses of the network, if this host enforced now'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "report" -d 'Tells the site\'s service how this host is, and fetches what the site has signed since (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "metrics" -d 'What Prometheus scrapes, in its text format'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "config" -d 'Looks at the configuration'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "init" -d 'Make a new site: its authority, its site key and an empty record'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "renew-authority" -d 'Give the authority another certificate for its key, before or after the one that it has ends'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "issue" -d 'Issue a certificate to a host'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "renew" -d 'Give a host another certificate for the key that it has, with what its newest one says'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "list" -d 'List every certificate that the site has issued'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "revoke" -d 'Take a host out'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "token" -d 'Make tokens by which hosts join over the network'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "survey" -d 'Propose what is on the network: hosts, printers, routers, and addresses that two have'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "import" -d 'Make tokens and a legacy list of a table, as \'ringwall site survey --csv\' writes it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "pending" -d 'List the tokens that are open, and who applies with them'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "approve" -d 'Issue a certificate to a host that applies with a token'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "refuse" -d 'Refuse a host that applies with a token, or end a token'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "rekey" -d 'Give a host another key, because somebody else may have the one it has'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "rekey-shared" -d 'Change the keys that hosts share, because somebody else may have them'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "backup" -d 'Write the whole site to one new file: keys, record and repository'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "restore" -d 'Make a site again from its backup, in a directory that is missing or empty'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "recover" -d 'Take back from hosts what the site did after the backup that it was restored from'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "policy" -d 'Decide for all hosts at once who is admitted in clear, and how strict each is'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "serve" -d 'Run the service that hosts report to and fetch the policy and the revocation list from (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "signer" -d 'Sign for the site\'s service: renewals, and what tokens were preapproved for (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "audit" -d 'Show what was done with the authority and by whom, or look whether that record is whole'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "hosts" -d 'List all enrolled hosts with what they have reported: mode, policy, attacks, certificate'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "forecast" -d 'Say who would be cut off, and which uses of the network, if hosts enforced now'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "enforce" -d 'Have a group enforce on trial, and for good if every host of it goes on reporting'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "operator" -d 'Say who may give the site\'s service orders, and which (\'ringwall operate\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from site" -f -a "repository" -d 'Choose where the repository of hosts is kept: in a file, or in a cluster of etcd that several distributors share'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "run" -d 'Guards the interface until it is told to stop (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "confirm" -d 'Keeps the interface guarded after `run --revert-after`'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "release" -d 'Stops the daemon, if one runs, and gives the interface back to the stack, in clear (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "reload" -d 'Reads the configuration again: mode of migration, exceptions and management machines, without a pause'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "forget" -d 'Forgets that a host has proved itself, so that it may speak in clear again in mode prefer'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "enroll" -d 'Makes this host\'s key, asks the authority for a certificate, and installs the answer: by token, or by file'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from host" -f -a "renew" -d 'Gets another certificate for the key that this host has, before the one it has ends'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from akd" -f -a "run" -d 'Guards the interface like `host run` and answers the site\'s hosts from the repository (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from gate" -f -a "run" -d 'Scrubs all that passes between two interfaces until it is told to stop (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from gate" -f -a "release" -d 'Stops the daemon, if one runs, and gives the interfaces back (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from gate" -f -a "flows" -d 'Lists TCP connections through the gateway'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from gate" -f -a "block" -d 'Ends a TCP connection through the gateway for both sides and lets none begin in its place'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from gate" -f -a "respond" -d 'Ends the TCP connections that an intrusion detection system condemns in its EVE records'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from gate" -f -a "handover" -d 'Has the other gateway of a pair take over, as before an update of this one'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from gate" -f -a "replay" -d 'Scrubs a capture file'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from gate" -f -a "rules" -d 'Lists the rules: what each does, what it can break, and in which presets it is on'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from shield" -f -a "run" -d 'Guards the IPsec stack behind the interface like `host run` (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from shield" -f -a "keys" -d 'Makes and changes the files that both ends of a pair share'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from console" -f -a "login" -d 'Prints a link that signs one person in, once, within five minutes (needs root)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "check" -d 'Checks the file and says what is wrong'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "show" -d 'Prints the configuration in force, defaults included'
