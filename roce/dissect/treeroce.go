package dissect

import (
	"encoding/hex"

	"xroce/roce/cm"
	"xroce/roce/wire"
)

func (p *Packet) treeBTH(t *Tree, l Layer) {
	h := p.RoCE.BTH
	t.begin(l, "Base transport header")
	t.dec("infiniband.bth.opcode", uint64(h.Opcode))
	t.mean(h.Opcode.String())
	t.bool("infiniband.bth.se", h.SE)
	t.bool("infiniband.bth.m", h.M)
	t.dec("infiniband.bth.padcnt", uint64(h.PadCnt))
	t.dec("infiniband.bth.tver", uint64(h.TVer))
	t.hex("infiniband.bth.p_key", 4, uint64(h.PKey))
	t.bool("xroce.bth.fecn", h.FECN)
	t.bool("xroce.bth.becn", h.BECN)
	t.hex("infiniband.bth.destqp", 6, uint64(h.DestQP))
	t.bool("infiniband.bth.a", h.AckReq)
	t.dec("infiniband.bth.psn", uint64(h.PSN))
}

// treeExtended lists the extended headers, each as one of its own.
func (p *Packet) treeExtended(t *Tree, l Layer) {
	w := &p.RoCE
	at := l.Off
	for h := range wire.Header(wire.NumHeaders) {
		if !w.Spec.Has(1 << h) {
			continue
		}
		t.begin(Layer{Extended, at, h.Len()}, h.String())
		at += h.Len()
		switch h {
		case wire.HeaderRDETH:
			t.hex("infiniband.rdeth.eecnxt", 6, uint64(w.RDETH().EECtx))
		case wire.HeaderXRCETH:
			t.hex("xroce.xrceth.srqn", 6, uint64(w.XRCETH().SRQN))
		case wire.HeaderDETH:
			t.hex("infiniband.deth.q_key", 8, uint64(w.DETH().QKey))
			t.hex("infiniband.deth.srcqp", 6, uint64(w.DETH().SrcQP))
		case wire.HeaderFETH:
			t.dec("xroce.feth.sel", uint64(w.FETH().SEL))
			t.hex("xroce.feth.plt", 2, uint64(w.FETH().PLT))
		case wire.HeaderRETH:
			t.hex("infiniband.reth.va", 16, w.RETH().VA)
			t.hex("infiniband.reth.r_key", 8, uint64(w.RETH().RKey))
			t.dec("infiniband.reth.dmalen", uint64(w.RETH().DMALen))
		case wire.HeaderAtomicETH:
			a := w.AtomicETH()
			t.hex("infiniband.reth.va", 16, a.VA)
			t.hex("infiniband.reth.r_key", 8, uint64(a.RKey))
			t.hex("infiniband.atomiceth.swapdt", 16, a.SwapAdd)
			t.hex("infiniband.atomiceth.cmpdt", 16, a.Compare)
		case wire.HeaderAETH:
			treeAETH(t, w.AETH())
		case wire.HeaderAtomicAckETH:
			t.dec("infiniband.atomicacketh.origremdt", w.AtomicAckETH().OrigData)
		case wire.HeaderImmDt:
			t.hex("infiniband.immdt", 8, uint64(w.ImmDt().Data))
		case wire.HeaderIETH:
			t.hex("infiniband.ieth", 8, uint64(w.IETH().RKey))
		case wire.HeaderAPSN:
			t.dec("xroce.apsn.psn", uint64(w.APSN().PSN))
		}
	}
}

func treeAETH(t *Tree, h wire.AETH) {
	t.hex("infiniband.aeth.syndrome", 2, uint64(h.Syndrome))
	t.mean(h.Syndrome.String())
	t.dec("infiniband.aeth.syndrome.opcode", uint64(h.Syndrome.Kind()))
	switch code := uint64(h.Syndrome.Code()); h.Syndrome.Kind() {
	case wire.KindACK:
		t.dec("infiniband.aeth.syndrome.credit_count", code)
	case wire.KindRNRNAK:
		t.dec("infiniband.aeth.syndrome.timer", code)
	case wire.KindNAK:
		t.dec("infiniband.aeth.syndrome.error_code", code)
	}
	t.dec("infiniband.aeth.msn", uint64(h.MSN))
}

// said lists what the payload says.
func (p *Packet) said(t *Tree) {
	at := Layer{}
	for _, l := range p.Layers() {
		if l.Kind == Payload {
			at = l
		}
	}
	if p.RoCE.BTH.Opcode == wire.SelectiveAck && p.IsRoCE && !p.Snapped {
		t.begin(at, "Selective acknowledge")
		t.text("xroce.selective.kept", hex.EncodeToString(p.RoCE.Payload))
	}
	if p.Fragments > 0 {
		p.treeFragments(t)
	}
	if p.IsManager {
		p.treeManager(t, at)
	}
	if p.IsMessage {
		t.begin(at, "Messages")
		t.text("xroce.msg", p.Message.String())
	}
	if p.IsEncap {
		t.begin(at, "Encapsulated datagram")
		t.text("xroce.encap.format", p.Encap.Format.String())
		t.text("xroce.encap.kind", p.Encap.Kind.String())
		t.dec("xroce.encap.len", uint64(p.Encap.Len()))
		if !p.Encap.Segment.Whole() {
			t.dec("xroce.encap.segment", uint64(p.Encap.Segment.Index))
			t.bool("xroce.encap.more", p.Encap.Segment.More)
		}
	}
}

// treeFragments lists of what the datagram was put together.
func (p *Packet) treeFragments(t *Tree) {
	n := len(p.Data) - p.joinedAt
	t.begin(Layer{UDP, p.joinedAt, n}, "Fragments")
	if p.joinedV6 {
		t.dec("ipv6.fragment.count", uint64(p.Fragments))
		t.dec("ipv6.reassembled.length", uint64(n))
		return
	}
	t.dec("ip.fragment.count", uint64(p.Fragments))
	t.dec("ip.reassembled.length", uint64(n))
}

// treeManager lists a MAD, and of the connection manager its message.
func (p *Packet) treeManager(t *Tree, l Layer) {
	h := p.Manager
	t.begin(Layer{MAD, l.Off, cm.MADLen}, "Management datagram")
	t.hex("infiniband.mad.baseversion", 2, uint64(h.BaseVersion))
	t.hex("infiniband.mad.mgmtclass", 2, uint64(h.MgmtClass))
	t.hex("infiniband.mad.classversion", 2, uint64(h.ClassVersion))
	t.hex("infiniband.mad.method", 2, uint64(h.Method))
	t.hex("infiniband.mad.status", 4, uint64(h.Status))
	t.hex("infiniband.mad.transactionid", 16, h.TID)
	t.hex("infiniband.mad.attributemodifier", 8, uint64(h.Modifier))
	t.hex("infiniband.mad.attributeid", 4, uint64(h.Attribute))
	if h.MgmtClass != cm.MgmtClass {
		return
	}
	t.mean(h.Attribute.String())
	t.begin(Layer{MAD, l.Off, cm.MADLen}, "Connection manager "+h.Attribute.String())
	switch h.Attribute {
	case cm.AttributeREQ:
		treeREQ(t, p.MAD)
	case cm.AttributeREP:
		treeREP(t, p.MAD)
	case cm.AttributeREJ:
		r, _ := cm.ParseREJ(p.MAD)
		t.hex("infiniband.cm.rej.localcommid", 8, uint64(r.LocalCommID))
		t.hex("infiniband.cm.rej.remotecommid", 8, uint64(r.RemoteCommID))
		t.hex("infiniband.cm.rej.msgrej", 2, uint64(r.Subject))
		t.hex("infiniband.cm.rej.rejinfolen", 2, uint64(r.InfoLen))
		t.hex("infiniband.cm.rej.reason", 4, uint64(r.Reason))
		t.mean(r.Reason.String())
	case cm.AttributeRTU:
		r, _ := cm.ParseRTU(p.MAD)
		treeComm(t, "infiniband.cm.rtu.localcommid", r.LocalCommID,
			"infiniband.cm.rtu.remotecommid", r.RemoteCommID)
	case cm.AttributeDREQ:
		r, _ := cm.ParseDREQ(p.MAD)
		treeComm(t, "infiniband.cm.dreq.localcommid", r.LocalCommID,
			"infiniband.cm.dreq.remotecommid", r.RemoteCommID)
		t.hex("infiniband.cm.req.remoteqpneecn", 6, uint64(r.RemoteQPN))
	case cm.AttributeDREP:
		r, _ := cm.ParseDREP(p.MAD)
		treeComm(t, "infiniband.cm.drsp.localcommid", r.LocalCommID,
			"infiniband.cm.drsp.remotecommid", r.RemoteCommID)
	default:
		p.treeUnnamed(t)
	}
}

// treeUnnamed lists the messages of which Wireshark names no fields.
func (p *Packet) treeUnnamed(t *Tree) {
	switch p.Manager.Attribute {
	case cm.AttributeSIDRREQ:
		r, _ := cm.ParseSIDRREQ(p.MAD)
		t.hex("xroce.cm.request", 8, uint64(r.RequestID))
		t.hex("xroce.cm.p_key", 4, uint64(r.PKey))
		t.hex("xroce.cm.service", 16, uint64(r.ServiceID))
	case cm.AttributeSIDRREP:
		r, _ := cm.ParseSIDRREP(p.MAD)
		t.hex("xroce.cm.request", 8, uint64(r.RequestID))
		t.dec("xroce.cm.status", uint64(r.Status))
		t.mean(r.Status.String())
		t.hex("xroce.cm.qpn", 6, uint64(r.QPN))
		t.hex("xroce.cm.service", 16, uint64(r.ServiceID))
		t.hex("xroce.cm.q_key", 8, uint64(r.QKey))
	case cm.AttributeMRA:
		r, _ := cm.ParseMRA(p.MAD)
		treeComm(t, "xroce.cm.local", r.LocalCommID, "xroce.cm.remote", r.RemoteCommID)
		t.text("xroce.cm.subject", r.Subject.String())
		t.dec("xroce.cm.timeout", uint64(r.ServiceTimeout))
	case cm.AttributeLAP:
		r, _ := cm.ParseLAP(p.MAD)
		treeComm(t, "xroce.cm.local", r.LocalCommID, "xroce.cm.remote", r.RemoteCommID)
		t.hex("xroce.cm.qpn", 6, uint64(r.RemoteQPN))
	case cm.AttributeAPR:
		r, _ := cm.ParseAPR(p.MAD)
		treeComm(t, "xroce.cm.local", r.LocalCommID, "xroce.cm.remote", r.RemoteCommID)
		t.dec("xroce.cm.status", uint64(r.Status))
	}
}

func treeComm(t *Tree, name string, local uint32, other string, remote uint32) {
	t.hex(name, 8, uint64(local))
	t.hex(other, 8, uint64(remote))
}

func treeREQ(t *Tree, mad []byte) {
	const prefix = "infiniband.cm.req."
	r, _ := cm.ParseREQ(mad)
	t.hex("infiniband.cm.req", 8, uint64(r.LocalCommID))
	t.hex("xroce.cm.service", 16, uint64(r.ServiceID))
	t.hex(prefix+"localcaguid", 16, r.LocalCAGUID)
	t.hex(prefix+"localqkey", 8, uint64(r.LocalQKey))
	t.hex(prefix+"localqpn", 6, uint64(r.LocalQPN))
	t.dec(prefix+"responderres", uint64(r.ResponderRes))
	t.dec(prefix+"initdepth", uint64(r.InitiatorDepth))
	t.dec(prefix+"remoteresptout", uint64(r.RemoteTimeout))
	t.dec(prefix+"transpsvctype", uint64(r.Transport))
	t.bool(prefix+"e2eflowctrl", r.FlowControl)
	t.hex(prefix+"startpsn", 6, uint64(r.StartingPSN))
	t.dec(prefix+"localresptout", uint64(r.LocalTimeout))
	t.dec(prefix+"retrcount", uint64(r.RetryCount))
	t.hex(prefix+"pkey", 4, uint64(r.PKey))
	t.dec(prefix+"pppmtu", uint64(r.PathMTU))
	t.bool(prefix+"rdcexist", r.RDCExists)
	t.dec(prefix+"rnrretrcount", uint64(r.RNRRetryCount))
	t.dec(prefix+"maxcmretr", uint64(r.MaxCMRetries))
	t.bool(prefix+"srq", r.SRQ)
	t.dec(prefix+"prim_locallid", uint64(r.Primary.LocalLID))
	t.dec(prefix+"prim_remotelid", uint64(r.Primary.RemoteLID))
	local, remote := addr(r.Primary.LocalGID), addr(r.Primary.RemoteGID)
	t.text("xroce.cm.local_gid", local.String())
	t.text("xroce.cm.remote_gid", remote.String())
	t.hex("xroce.cm.flow_label", 5, uint64(r.Primary.FlowLabel)) // Wireshark reads other bytes
	t.dec("xroce.cm.packet_rate", uint64(r.Primary.PacketRate))
	t.dec(prefix+"prim_tfcclass", uint64(r.Primary.TrafficClass))
	t.dec(prefix+"prim_hoplim", uint64(r.Primary.HopLimit))
	t.dec(prefix+"prim_sl", uint64(r.Primary.SL))
	t.bool(prefix+"prim_subnetlocal", r.Primary.SubnetLocal)
	t.dec(prefix+"prim_localacktout", uint64(r.Primary.LocalAckTimeout))
	ip, err := cm.ParseIPHeader(r.Private[:])
	if err != nil {
		return
	}
	t.dec(prefix+"ip_cm.sport", uint64(ip.Src.Port()))
	version := "4"
	if ip.Dst.Is6() {
		version = "6"
	}
	t.text(prefix+"ip_cm.sip"+version, ip.Src.Addr().String())
	t.text(prefix+"ip_cm.dip"+version, ip.Dst.String())
}

func treeREP(t *Tree, mad []byte) {
	const prefix = "infiniband.cm.rep."
	r, _ := cm.ParseREP(mad)
	t.hex("infiniband.cm.rep", 8, uint64(r.LocalCommID))
	t.hex(prefix+"remotecommid", 8, uint64(r.RemoteCommID))
	t.hex(prefix+"localqkey", 8, uint64(r.LocalQKey))
	t.hex(prefix+"localqpn", 6, uint64(r.LocalQPN))
	t.hex(prefix+"startpsn", 6, uint64(r.StartingPSN))
	t.dec(prefix+"respres", uint64(r.ResponderRes))
	t.dec(prefix+"initdepth", uint64(r.InitiatorDepth))
	t.dec(prefix+"tgtackdelay", uint64(r.TargetAckDelay))
	t.dec(prefix+"failoveracc", uint64(r.Failover))
	t.bool(prefix+"e2eflowctrl", r.FlowControl)
	t.dec(prefix+"rnrretrcount", uint64(r.RNRRetryCount))
	t.bool(prefix+"srq", r.SRQ)
	t.hex(prefix+"localcaguid", 16, r.LocalCAGUID)
}
