package cm

import (
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// batches is how often MADs are taken from the CQ before MADs are sent: the machine's outbox
// has room for the answers to so many by default.
const batches = 8

// A service is a manager as the device calls it: it joins QP 1, the machine and time until
// the manager or the device is closed.
type service struct{ *Manager }

// HandleCompletions implements engine.Service.
func (m service) HandleCompletions(roce.Time) (more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return false
	}
	more = m.poll()
	m.takeHeard()
	m.endQuiet()
	m.dispatch()
	return more
}

// NextDeadline implements engine.Service.
func (m service) NextDeadline() (roce.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.machine.NextDeadline()
	if turn, waits := m.routes.deadline(); waits && (!ok || turn < at) {
		at, ok = turn, true
	}
	switch {
	case m.ended || !ok:
		return 0, false
	case m.clock != engine.Clock(m.dev):
		at += m.dev.Now() - m.clock.Now() // in the time of the device
	}
	return at, true
}

// HandleDeadline implements engine.Service.
func (m service) HandleDeadline(roce.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ended {
		m.machine.HandleDeadline(m.clock.Now())
		m.nextSearches()
		m.dispatch()
	}
}

// HandleFailure implements engine.Service.
func (m service) HandleFailure(error) {
	m.end()
	m.cancel()
}

// poll takes what came to QP 1, a bounded part of it, so that a peer that sends all
// the time does not keep others waiting. It reports whether there may be more. The caller
// holds mu.
func (m *Manager) poll() (more bool) {
	m.machine.SetMTU(m.dev.ActiveMTU())
	var wcs [32]roce.Completion
	for range batches {
		if m.ended {
			return false
		}
		n, err := m.cq.Take(wcs[:])
		for i := range wcs[:n] {
			m.take(&wcs[i])
			m.tellAll() // before a request of a peer may have to make room, its host is known
		}
		if err != nil {
			return false // the CQ has room for all: this is the end of the device
		}
		if n == 0 && !m.cq.Arm(false) {
			return false
		}
	}
	return true
}

// take hands what a completion tells to the machine.
func (m *Manager) take(wc *roce.Completion) {
	if wc.Opcode != roce.WCRecv || wc.Status != roce.StatusSuccess {
		return
	}
	slot := int(wc.WRID)
	b := m.mr.Bytes()[slot*slotLen:][:wc.ByteLen]
	// A header that cannot be read leaves the path zero, which the machine counts as a
	// wrong source.
	came, _ := wire.ParseReplyGRH(b)
	ours, isOurs := m.dev.FindGID(came.Src, wc.VLAN)
	switch {
	case wc.SrcQP != m.qp.QPN():
		m.lost.NotQP1++
	case isOurs && ours.MAC != wc.SrcMAC, !isOurs && !isStation(wc.SrcMAC):
		m.lost.Martian++
	default:
		// Answers have no flow label: that is of the sender's choice.
		m.machine.HandleMAD(m.clock.Now(), cm.Path{
			Local: came.Dst, Remote: came.Src, TClass: came.TClass &^ ecnBits,
			PKeyIndex: wc.PKeyIndex, Via: cm.Via{MAC: wc.SrcMAC, VLAN: wc.VLAN},
		}, b[grhLen:])
	}
	// It was posted before, so only the end of the device can refuse it.
	_ = m.receive(slot)
}

// isStation reports whether a MAC address can be that of a sender: neither of a group nor all
// zeros (IEEE 802.3, 3.2.3). Nothing can be answered to another one.
func isStation(mac [6]byte) bool { return mac[0]&1 == 0 && mac != [6]byte{} }

// ecnBits are what the way of a packet said, not its sender.
const ecnBits = 3
