package transfer

import "fmt"

// greet begins the conversation of a sender.
func (c *control) greet(token Token) error {
	nonce := newNonce()
	if err := c.send(message{Protocol: protocol, Nonce: nonce}); err != nil {
		return err
	}
	m, err := c.receive()
	if err == nil {
		err = m.checkHello()
	}
	switch {
	case err != nil:
		return err
	case m.Token && token == nil:
		return fmt.Errorf("%w: the server asks for one: give its --token-file, or XROCE_TOKEN",
			ErrToken)
	case !m.Token && token != nil:
		return fmt.Errorf("%w: the server has none, so it may be any: start it with the same "+
			"--token-file, or copy without one", ErrToken)
	case m.Token:
		c.seal = newSeal(token, true, nonce, m.Nonce)
		c.trusted.Store(true)
	}
	return nil
}

// challenge begins the conversation of a receiver. With a token, what the sender says
// next shows whether it knows it.
func (c *control) challenge(token Token) error {
	m, err := c.receive()
	if err == nil {
		err = m.checkHello()
	}
	if err != nil {
		return err
	}
	nonce := newNonce()
	if err := c.send(message{Protocol: protocol, Nonce: nonce, Token: token != nil}); err != nil {
		return err
	}
	if token != nil {
		c.seal = newSeal(token, false, m.Nonce, nonce)
	}
	return nil
}

// checkHello refuses the first message of a peer of another version.
func (m *message) checkHello() error {
	if m.Protocol != protocol || len(m.Nonce) != nonceLen {
		return fmt.Errorf("protocol %d with %d random bytes, and not %d with %d: is the peer of "+
			"another version?", m.Protocol, len(m.Nonce), protocol, nonceLen)
	}
	return nil
}
