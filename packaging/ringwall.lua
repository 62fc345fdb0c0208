-- Ringwall's link layer and S-ARP for Wireshark and tshark, by docs/protocol.md and docs/s-arp.md. What is sealed
-- stays so: capture the guarded interface to see what is inside.
-- Debian's package has it loaded by itself; elsewhere put it into ~/.local/lib/wireshark/plugins. Not for root: started
-- by root, Wireshark and tshark load no scripts.

local cll = Proto("ringwall", "Ringwall link layer")
local sarp = Proto("ringwall_sarp", "S-ARP")

local types = {
    [1] = "sealed frame", [2] = "group frame", [3] = "handshake request", [4] = "handshake reply",
    [5] = "rollover request", [6] = "rollover reply", [7] = "acknowledgement", [8] = "challenge",
    [9] = "announcement", [10] = "question", [11] = "DHCP frame", [12] = "resumption request",
    [13] = "resumption reply", [14] = "ticket",
}
local suites = { [1] = "aes-256-gcm", [2] = "aes-128-gcm", [3] = "chacha20-poly1305", [4] = "aegis-128l" }
local messages = {
    [0x00] = "resolution", [0x01] = "time request", [0x02] = "time reply", [0x04] = "key request",
    [0x08] = "key reply", [0x18] = "key not found", [0x20] = "key invalid", [0x40] = "key change",
    [0x48] = "key changed", [0x80] = "lease", [0x88] = "lease agreed", [0x90] = "lease refused",
    [0xA0] = "application", [0xA4] = "fetch", [0xA8] = "enrolment",
}

local f = {
    version = ProtoField.uint8("ringwall.version", "Version", base.DEC, nil, 0xF0),
    type = ProtoField.uint8("ringwall.type", "Type", base.DEC, types, 0x0F),
    flags = ProtoField.uint8("ringwall.flags", "Flags", base.HEX),
    tag = ProtoField.bytes("ringwall.site_tag", "Site tag"),
    timestamp = ProtoField.uint64("ringwall.timestamp_ms", "Sender's clock (ms since 1970)"),
    nonce = ProtoField.bytes("ringwall.nonce", "Nonce"),
    agreement = ProtoField.uint8("ringwall.key_agreement", "Key agreement"),
    suite = ProtoField.uint8("ringwall.suite", "Suite", base.DEC, suites),
    encrypts = ProtoField.bool("ringwall.encrypts", "Encrypts", 8, nil, 0x01),
    lanes = ProtoField.uint8("ringwall.lanes", "Lanes"),
    index = ProtoField.uint32("ringwall.receiver_index", "Receiver index", base.HEX),
    lifetime = ProtoField.uint32("ringwall.lifetime_s", "Lifetime (s)"),
    compression = ProtoField.uint8("ringwall.compression", "Compression and further secrets", base.HEX),
    nonces = ProtoField.uint8("ringwall.nonces", "Kinds of nonces", base.HEX),
    key = ProtoField.bytes("ringwall.key_share", "Key share"),
    cookie = ProtoField.bytes("ringwall.cookie", "Cookie"),
    certificate = ProtoField.bytes("ringwall.certificate", "Certificate"),
    signature = ProtoField.bytes("ringwall.signature", "Signature"),
    sequence = ProtoField.uint32("ringwall.sequence", "Sequence number"),
    spin = ProtoField.uint32("ringwall.spinning_nonce", "Spinning nonce", base.HEX),
    slow = ProtoField.uint32("ringwall.slow_nonce", "Slow nonce", base.HEX),
    sealed = ProtoField.bytes("ringwall.sealed", "Sealed"),
    seal = ProtoField.bytes("ringwall.tag", "Authentication tag"),
    rest = ProtoField.bytes("ringwall.rest", "Rest"),
}
cll.fields = f

local s = {
    type = ProtoField.uint8("ringwall_sarp.type", "Type", base.HEX, messages),
    signature_length = ProtoField.uint8("ringwall_sarp.signature_length", "Length of the signature"),
    data_length = ProtoField.uint16("ringwall_sarp.data_length", "Length of the data"),
    time = ProtoField.uint32("ringwall_sarp.time_s", "Sender's S-ARP clock (s since 1970)"),
    data = ProtoField.bytes("ringwall_sarp.data", "Data"),
    signature = ProtoField.bytes("ringwall_sarp.signature", "Signature or tag"),
}
sarp.fields = s

local short = ProtoExpert.new("ringwall.short", "The message ends too early", expert.group.MALFORMED, expert.severity.ERROR)
cll.experts = { short }
local cut = ProtoExpert.new("ringwall_sarp.short", "The message ends too early", expert.group.MALFORMED, expert.severity.ERROR)
sarp.experts = { cut }

cll.prefs.ethertype = Pref.uint("EtherType", 0x07D0, "cll.ethertype of the site")

local arp = Dissector.get("arp")

-- Handshake messages of the current profile, section 4; about IPv6 the rest stands 24 bytes further (section 23).
local function handshake(buffer, pinfo, tree)
    tree:add(f.tag, buffer(2, 16))
    local far = buffer(20, 2):uint() == 0x86DD and 24 or 0
    if far == 0 then
        arp:call(buffer(18, 28):tvb(), pinfo, tree)
    end
    local function at(offset, length)
        return buffer(offset + far, length)
    end
    tree:add(f.timestamp, at(46, 8))
    tree:add(f.nonce, at(54, 16))
    tree:add(f.agreement, at(70, 1))
    tree:add(f.suite, at(71, 1))
    tree:add(f.encrypts, at(72, 1))
    tree:add(f.lanes, at(73, 1))
    tree:add(f.index, at(74, 4))
    tree:add(f.lifetime, at(78, 4))
    tree:add(f.compression, at(82, 1))
    tree:add(f.nonces, at(83, 1))
    local key = at(70, 1):uint() == 2 and 256 or 32
    tree:add(f.key, at(84, key))
    tree:add(f.cookie, at(84 + key, 16))
    local length = at(100 + key, 2):uint()
    tree:add(f.certificate, at(102 + key, length))
    local signature = at(102 + key + length, 2):uint()
    tree:add(f.signature, at(104 + key + length, signature))
end

-- Section 5.
local function sealed(buffer, pinfo, tree)
    tree:add(f.index, buffer(2, 4))
    tree:add(f.sequence, buffer(6, 4))
    tree:add(f.spin, buffer(10, 4))
    local start = 14
    if buffer(1, 1):uint() % 2 == 1 then
        tree:add(f.slow, buffer(14, 4))
        start = 18
    end
    tree:add(f.sealed, buffer(start, buffer:len() - start - 16))
    tree:add(f.seal, buffer(buffer:len() - 16, 16))
    return string.format(", index 0x%08x, number %d", buffer(2, 4):uint(), buffer(6, 4):uint())
end

local bodies = { [1] = sealed, [3] = handshake, [4] = handshake }

function cll.dissector(buffer, pinfo, root)
    if buffer:len() < 2 then
        return 0
    end
    local tree = root:add(cll, buffer())
    tree:add(f.version, buffer(0, 1))
    tree:add(f.type, buffer(0, 1))
    tree:add(f.flags, buffer(1, 1))
    local kind = buffer(0, 1):uint() % 16
    local body, more = bodies[kind], nil
    if body == nil then
        tree:add(f.rest, buffer(2))
    else
        local is_whole, said = pcall(body, buffer, pinfo, tree)
        if is_whole then
            more = said
        else
            tree:add_proto_expert_info(short)
        end
    end
    -- The ARP inside of a handshake has written into the columns.
    pinfo.cols.protocol = "RINGWALL"
    pinfo.cols.info = (types[kind] or "unknown type") .. (more or "")
    return buffer:len()
end

-- Section 1 of docs/s-arp.md; plain ARP has no magic behind it.
function sarp.dissector(buffer, pinfo, root)
    if buffer:len() < 40 or buffer(28, 4):uint() ~= 0x7599E11E then
        arp:call(buffer, pinfo, root)
        return buffer:len()
    end
    -- It takes what is behind ARP for padding and cuts it off.
    arp:call(buffer(0, 28):tvb(), pinfo, root)
    pinfo.cols.protocol = "S-ARP"
    local tree = root:add(sarp, buffer(28))
    local kind = buffer(32, 1):uint()
    tree:add(s.type, buffer(32, 1))
    tree:add(s.signature_length, buffer(33, 1))
    tree:add(s.data_length, buffer(34, 2))
    tree:add(s.time, buffer(36, 4))
    local data, signature = buffer(34, 2):uint(), buffer(33, 1):uint()
    if buffer:len() < 40 + data + signature then
        tree:add_proto_expert_info(cut)
        return buffer:len()
    end
    if data > 0 then
        tree:add(s.data, buffer(40, data))
    end
    if signature > 0 then
        tree:add(s.signature, buffer(40 + data, signature))
    end
    pinfo.cols.info:prepend((messages[kind] or "unknown message") .. ": ")
    return buffer:len()
end

local ethertypes = DissectorTable.get("ethertype")
local current = 0x07D0
ethertypes:add(current, cll)
ethertypes:add(0x0806, sarp)

function cll.prefs_changed()
    if cll.prefs.ethertype ~= current then
        ethertypes:remove(current, cll)
        current = cll.prefs.ethertype
        ethertypes:add(current, cll)
    end
end
