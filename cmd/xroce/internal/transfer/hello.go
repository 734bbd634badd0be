package transfer

import (
	"context"
	"fmt"
)

// greet begins the conversation of a client.
func (c *control) greet(ctx context.Context, token Token) error {
	nonce := newNonce()
	m, err := c.ask(ctx, message{Protocol: protocol, Nonce: nonce}, c.patience.exchange)
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
		c.trusted = true
	}
	return nil
}

// challenge begins the conversation of a server. With a token, what the client says
// next shows whether it knows it.
func (c *control) challenge(ctx context.Context, token Token) error {
	m, err := c.receive(ctx, c.patience.exchange)
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
