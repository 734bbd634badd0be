-- Teaches Wireshark and tshark what they do not know of RoCE and of xroce:
--
--   * whether the ICRC is right (xroce.icrc: "ok", "BAD", "cut")
--   * FLUSH, ATOMIC WRITE, CNP and XRC, and the congestion bits of the BTH
--   * xroce's selective acknowledge, and its control messages and frames
--   * native packets behind an Ethernet header, what is behind a GRH whose next header is not
--     IBA, and the frames of a virtual switch
--
-- "xroce wireshark --install" puts it where Wireshark finds it. To try it:
--
--   tshark -X lua_script:xroce.lua -r FILE

local ETHERTYPE_NATIVE = 0x88b5
local GRH_LEN, IBA = 40, 0x1b

local function inner(name, range, pinfo, tree)
    Dissector.get(name):call(range:tvb(), pinfo, tree)
end

-- Native packets begin with an LRH. Its length is in words, without the VCRC, and behind
-- that is the padding of Ethernet.
local native = Proto("xroce_native", "Native InfiniBand packet")
function native.dissector(b, pinfo, tree)
    if b:len() < 8 then return 0 end
    local n = 4 * b(4, 2):bitfield(5, 11) + 2
    if n > b:len() then return 0 end
    inner("infiniband", b(0, n), pinfo, tree)
    return n
end
DissectorTable.get("ethertype"):add(ETHERTYPE_NATIVE, native)

-- What is behind a GRH, by its next header.
local behind = { [4] = "ip", [41] = "ipv6", [143] = "eth_withoutfcs" }
local grh_field = Field.new("infiniband.grh.nxthdr")
local grh = Proto("xroce_grh", "Datagram behind a GRH")
function grh.dissector(b, pinfo, tree)
    local next = grh_field()
    if next == nil or next.value == IBA or behind[next.value] == nil then return end
    local start = next.offset - 6
    local n = b(start + 4, 2):uint()
    if start + GRH_LEN + n > b:len() then return end
    inner(behind[next.value], b(start + GRH_LEN, n), pinfo, tree)
end
register_postdissector(grh)

-- A virtual switch has a header of 8 bytes, of which the second half is the word of EoIB, and
-- a tail of one. A segment is shown as bytes.
local vnic = Proto("xroce_vnic", "Frame of a virtual switch")
local switch = ProtoField.uint16("xroce_vnic.switch", "Switch")
local word = ProtoField.uint32("xroce_vnic.word", "Word of EoIB", base.HEX)
local pad = ProtoField.uint8("xroce_vnic.pad", "Pad count", base.DEC, nil, 7)
vnic.fields = { switch, word, pad }
vnic:register_heuristic("infiniband.payload", function(b, pinfo, tree)
    local n = b:len()
    if n < 16 or n % 8 ~= 0 or b(0, 2):uint() ~= 0 or b(4, 1):bitfield(0, 4) ~= 12 then
        return false
    end
    local padding = b(n - 1, 1):bitfield(5, 3)
    local t = tree:add(vnic, b(0, 8))
    t:add(switch, b(2, 2))
    t:add(word, b(4, 4))
    t:add(pad, b(n - 1, 1))
    local segment = b(5, 1):bitfield(2, 6) ~= 0
    inner(segment and "data" or "eth_withoutfcs", b(8, n - 9 - padding), pinfo, tree)
    return true
end)

-- From here on: the transport, as a protocol behind that of Wireshark.

local bits = bit32 or bit -- the second in Wireshark of Lua 5.3 and later
local bxor, band, rshift, bnot = bits.bxor, bits.band, bits.rshift, bits.bnot

local roce = Proto("xroce", "RoCE, what Wireshark does not know of it")
local f = {
    opcode = ProtoField.string("xroce.opcode", "Opcode"),
    fecn = ProtoField.uint8("xroce.bth.fecn", "FECN"),
    becn = ProtoField.uint8("xroce.bth.becn", "BECN"),
    srqn = ProtoField.uint24("xroce.xrceth.srqn", "XRC SRQ", base.HEX),
    sel = ProtoField.uint8("xroce.feth.sel", "Selectivity", base.DEC,
        { [0] = "range", [1] = "memory region" }),
    plt = ProtoField.uint8("xroce.feth.plt", "Placement", base.HEX),
    va = ProtoField.uint64("xroce.reth.va", "Virtual address", base.HEX),
    rkey = ProtoField.uint32("xroce.reth.r_key", "R_Key", base.HEX),
    dmalen = ProtoField.uint32("xroce.reth.dmalen", "DMA length"),
    swap = ProtoField.uint64("xroce.atomiceth.swapdt", "Swap or add", base.HEX),
    compare = ProtoField.uint64("xroce.atomiceth.cmpdt", "Compare", base.HEX),
    syndrome = ProtoField.uint8("xroce.aeth.syndrome", "Syndrome", base.HEX),
    msn = ProtoField.uint24("xroce.aeth.msn", "Message sequence number"),
    orig = ProtoField.uint64("xroce.atomicacketh.origremdt", "Original data", base.HEX),
    imm = ProtoField.uint32("xroce.immdt", "Immediate", base.HEX),
    inv = ProtoField.uint32("xroce.ieth", "Key to invalidate", base.HEX),
    acked = ProtoField.uint24("xroce.apsn.psn", "PSN acknowledged"),
    kept = ProtoField.bytes("xroce.selective.kept", "Kept behind the PSN"),
    icrc = ProtoField.string("xroce.icrc", "ICRC"),
    message = ProtoField.string("xroce.msg.type", "Message"),
    id = ProtoField.uint32("xroce.msg.id", "ID"),
    length = ProtoField.uint64("xroce.msg.len", "Length"),
    tag = ProtoField.uint64("xroce.msg.tag", "Tag", base.HEX),
    sequence = ProtoField.uint32("xroce.msg.seq", "Sequence"),
    released = ProtoField.uint32("xroce.msg.released", "Released slots"),
    epoch = ProtoField.uint32("xroce.msg.epoch", "Epoch"),
    used = ProtoField.uint32("xroce.msg.used", "Bytes used"),
    records = ProtoField.uint16("xroce.msg.records", "Records"),
}
local fields = {}
for _, v in pairs(f) do fields[#fields + 1] = v end
roce.fields = fields
local bad_icrc = ProtoExpert.new("xroce.icrc.bad", "The ICRC is wrong", expert.group.CHECKSUM,
    expert.severity.ERROR)
roce.experts = { bad_icrc }

-- Names of operations, the low five bits of an opcode, and the headers that they have.
local operations = {
    [0x00] = { "SEND_FIRST" }, [0x01] = { "SEND_MIDDLE" }, [0x02] = { "SEND_LAST" },
    [0x03] = { "SEND_LAST_IMM", "imm" }, [0x04] = { "SEND_ONLY" },
    [0x05] = { "SEND_ONLY_IMM", "imm" }, [0x06] = { "WRITE_FIRST", "reth" },
    [0x07] = { "WRITE_MIDDLE" }, [0x08] = { "WRITE_LAST" }, [0x09] = { "WRITE_LAST_IMM", "imm" },
    [0x0a] = { "WRITE_ONLY", "reth" }, [0x0b] = { "WRITE_ONLY_IMM", "reth", "imm" },
    [0x0c] = { "READ_REQUEST", "reth" }, [0x0d] = { "READ_RESP_FIRST", "aeth" },
    [0x0e] = { "READ_RESP_MIDDLE" }, [0x0f] = { "READ_RESP_LAST", "aeth" },
    [0x10] = { "READ_RESP_ONLY", "aeth" }, [0x11] = { "ACK", "aeth" },
    [0x12] = { "ATOMIC_ACK", "aeth", "orig" }, [0x13] = { "CMP_SWAP", "atomic" },
    [0x14] = { "FETCH_ADD", "atomic" }, [0x16] = { "SEND_LAST_INV", "inv" },
    [0x17] = { "SEND_ONLY_INV", "inv" },
}
local answers = { [0x0d] = true, [0x0e] = true, [0x0f] = true, [0x10] = true, [0x11] = true,
    [0x12] = true }

-- What Wireshark 4.0 does not know, by its whole opcode.
local unknown = {
    [0x1c] = { "RC_FLUSH", "feth", "reth" }, [0x1d] = { "RC_ATOMIC_WRITE", "reth" },
    [0x81] = { "CNP" }, [0xd1] = { "OWN_SELECTIVE_ACK", "aeth", "kept" },
    [0xc4] = { "OWN_SEND_ONLY_ACK", "aeth", "apsn" },
    [0xc5] = { "OWN_SEND_ONLY_IMM_ACK", "aeth", "imm", "apsn" },
    [0xca] = { "OWN_WRITE_ONLY_ACK", "reth", "aeth", "apsn" },
    [0xcb] = { "OWN_WRITE_ONLY_IMM_ACK", "reth", "aeth", "imm", "apsn" },
}
for op, spec in pairs(operations) do
    local row = { "XRC_" .. spec[1] }
    if not answers[op] then row[2] = "srqn" end
    for i = 2, #spec do row[#row + 1] = spec[i] end
    unknown[0xa0 + op] = row
end

-- Each header: its length, and what of it is shown.
local headers = {
    srqn = { 4, { f.srqn, 1, 3 } },
    reth = { 16, { f.va, 0, 8 }, { f.rkey, 8, 4 }, { f.dmalen, 12, 4 } },
    aeth = { 4, { f.syndrome, 0, 1 }, { f.msn, 1, 3 } },
    orig = { 8, { f.orig, 0, 8 } },
    imm = { 4, { f.imm, 0, 4 } },
    inv = { 4, { f.inv, 0, 4 } },
    apsn = { 4, { f.acked, 1, 3 } },
    atomic = { 28, { f.va, 0, 8 }, { f.rkey, 8, 4 }, { f.swap, 12, 8 }, { f.compare, 20, 8 } },
    kept = { 32, { f.kept, 0, 32 } },
}

-- The CRC-32 of Ethernet, a byte at a time.
local crc_table = {}
for i = 0, 255 do
    local c = i
    for _ = 1, 8 do
        if band(c, 1) == 1 then c = bxor(rshift(c, 1), 0xedb88320) else c = rshift(c, 1) end
    end
    crc_table[i] = c
end
local function crc(c, text)
    for i = 1, #text do
        c = bxor(rshift(c, 8), crc_table[band(bxor(c, text:byte(i)), 0xff)])
    end
    return c
end

-- Masks some bytes of a text with ones: at holds offsets from 0.
local function masked(text, at)
    local t = { text:byte(1, #text) }
    for _, i in ipairs(at) do t[i + 1] = 0xff end
    return string.char(table.unpack(t))
end

local ONES = string.rep("\255", 8)

-- What the ICRC covers before the BTH at an offset, and how long the packet is from there on. It is
-- found by what lies right before the BTH.
local function before(b, bth)
    if bth >= 28 and b(bth - 8 + 2, 2):uint() == 4791 then
        local n = b(bth - 4, 2):uint() - 8
        if b(bth - 28, 1):uint() == 0x45 and b(bth - 19, 1):uint() == 17 then
            return ONES .. masked(b:raw(bth - 28, 28), { 1, 8, 10, 11, 26, 27 }), n
        end
        if bth >= 48 and b(bth - 48, 1):bitfield(0, 4) == 6 then
            local h = masked(b:raw(bth - 48, 48), { 1, 2, 3, 7, 46, 47 })
            return ONES .. "\111" .. h:sub(2), n
        end
    end
    if bth >= GRH_LEN and b(bth - 40, 1):bitfield(0, 4) == 6 and b(bth - 34, 1):uint() == IBA then
        local h = masked(b:raw(bth - 40, 40), { 1, 2, 3, 7 })
        return ONES .. "\111" .. h:sub(2), b(bth - 36, 2):uint()
    end
    if bth >= 8 and b(bth - 7, 1):bitfield(6, 2) == 2 then
        local first = 0xf0 + b(bth - 8, 1):bitfield(4, 4)
        return string.char(first) .. b:raw(bth - 7, 7), 4 * b(bth - 4, 2):bitfield(5, 11) - 8
    end
end

local id_field, v4_source, v4_destination = Field.new("ip.id"), Field.new("ip.src"),
    Field.new("ip.dst")
local v6_source, v6_destination = Field.new("ipv6.src"), Field.new("ipv6.dst")

-- What the ICRC covers before the BTH of a packet that was put together of IP fragments: the IP
-- header that it had before, with b from its UDP header on.
local function joined(b)
    local n = b:len()
    local udp = masked(b:raw(0, 8), { 6, 7 })
    local src, dst = v4_source(), v4_destination()
    if src and dst and id_field() then
        local id = id_field().value
        local h = string.char(0x45, 0xff, math.floor((n + 20) / 256), (n + 20) % 256,
            math.floor(id / 256), id % 256, 0, 0, 0xff, 17, 0xff, 0xff)
        return ONES .. h .. src.range:raw() .. dst.range:raw() .. udp, n - 8
    end
    src, dst = v6_source(), v6_destination()
    if src and dst then
        local h = string.char(0x6f, 0xff, 0xff, 0xff, math.floor(n / 256), n % 256, 17, 0xff)
        return ONES .. h .. src.range:raw() .. dst.range:raw() .. udp, n - 8
    end
end

-- The verdict on the ICRC of the packet whose BTH is at an offset, and where it is.
local function verdict(b, bth, fragments)
    local head, n
    if fragments then head, n = joined(b) else head, n = before(b, bth) end
    if head == nil or n < 16 then return "-" end
    if bth + n > b:len() then return "cut" end
    local c = crc(crc(0xffffffff, head), masked(b:raw(bth, 12), { 4 }))
    c = bnot(crc(c, b:raw(bth + 12, n - 16)))
    local at = bth + n - 4
    if bxor(c, b(at, 4):le_uint()) % 2 ^ 32 == 0 then return "ok", at end
    return "BAD", at
end

local types = {
    "ADVERT", "ADVERT_ACK", "CREDIT", "RTS", "RTR", "ATS", "ATP", "CTS", "RTS_CANCEL",
    "PROVISION_REQ", "PROVISION_ACK", "PROVISION_NAK", "RELEASE", "RELEASE_ACK", "MATCHED", "FIN",
    "BYE", "RESUME",
}

-- A control message is a SEND of one packet that begins with "XM". A frame has no such mark: one is
-- looked for where a WRITE WITH IMMEDIATE of one packet has room for what it says.
local function message(b, op, at, n, tree)
    if op == 0x04 and n >= 48 and b:raw(at, 2) == "XM" and types[b(at + 3, 1):uint()] then
        local t = tree:add(f.message, b(at, n), types[b(at + 3, 1):uint()])
        t:add(f.id, b(at + 8, 4))
        t:add(f.rkey, b(at + 12, 4))
        t:add(f.va, b(at + 16, 8))
        t:add(f.length, b(at + 24, 8))
        t:add(f.tag, b(at + 32, 8))
        t:add(f.sequence, b(at + 40, 4))
        t:add(f.released, b(at + 44, 4))
    elseif op == 0x0b and n >= 40 and b(at + 14, 2):uint() == 0 and b(at + 12, 2):uint() > 0 and
        b(at + 8, 4):uint() <= n - 24 and b(at + 8, 4):uint() % 8 == 0 and
        b(at + 12, 2):uint() * 8 <= b(at + 8, 4):uint() then
        local t = tree:add(f.message, b(at, n), "FRAME")
        t:add(f.epoch, b(at, 4))
        t:add(f.sequence, b(at + 4, 4))
        t:add(f.used, b(at + 8, 4))
        t:add(f.records, b(at + 12, 2))
        t:add(f.released, b(at + 16, 4))
    end
end

-- Shows the headers of an opcode that Wireshark does not know.
local function extended(b, spec, at, tree)
    for i = 2, #spec do
        if spec[i] == "feth" then
            if at + 4 > b:len() then return end
            tree:add(f.sel, b(at + 3, 1), b(at + 3, 1):bitfield(2, 2))
            tree:add(f.plt, b(at + 3, 1), b(at + 3, 1):bitfield(4, 4))
            at = at + 4
        else
            local h = headers[spec[i]]
            if at + h[1] > b:len() then return end
            for j = 2, #h do tree:add(h[j][1], b(at + h[j][2], h[j][3])) end
            at = at + h[1]
        end
    end
end

local opcode_field = Field.new("infiniband.bth.opcode")
local services = { [0] = "RC_", [1] = "UC_", [3] = "UD_" }
function roce.dissector(b, pinfo, root)
    local frame = b
    for _, info in ipairs({ opcode_field() }) do
        local bth, op = info.offset, info.value
        -- Of a packet in fragments the bytes are not those of the frame.
        local source = info.source
        local fragments = bth == 8 and source and source:len() ~= frame:len()
        b = fragments and source or frame
        if bth + 12 > b:len() then return end
        local tree = root:add(roce, b(bth, 12))
        local spec = unknown[op]
        local known = operations[op % 32]
        if spec then
            tree:add(f.opcode, b(bth, 1), spec[1])
        elseif known and services[math.floor(op / 32)] then
            tree:add(f.opcode, b(bth, 1), services[math.floor(op / 32)] .. known[1])
        end
        tree:add(f.fecn, b(bth + 4, 1), b(bth + 4, 1):bitfield(0, 1))
        tree:add(f.becn, b(bth + 4, 1), b(bth + 4, 1):bitfield(1, 1))
        local word, at = verdict(b, bth, fragments)
        if spec then
            extended(b, spec, bth + 12, tree)
            local text = string.format("%s QP=0x%06x PSN=%d", spec[1], b(bth + 5, 3):uint(),
                b(bth + 9, 3):uint())
            pinfo.cols.info:set(text)
        elseif known and op < 32 and at then
            local first = bth + 12
            for i = 2, #known do first = first + headers[known[i]][1] end
            local n = at - first - b(bth + 1, 1):bitfield(2, 2)
            if n > 0 then message(b, op, first, n, tree) end
        end
        local item = tree:add(f.icrc, at and b(at, 4) or b(bth, 12), word)
        if word == "BAD" then
            item:add_proto_expert_info(bad_icrc)
            pinfo.cols.info:append(" [ICRC BAD]")
        end
    end
end
register_postdissector(roce)
