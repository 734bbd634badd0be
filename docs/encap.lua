-- Teaches Wireshark and tshark what they do not know of the formats of docs/encap.md: native
-- packets behind an Ethernet header, what is behind a GRH whose next header is not IBA, and
-- the frames of a virtual switch.
--
--   tshark -X lua_script:docs/encap.lua -r FILE

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
