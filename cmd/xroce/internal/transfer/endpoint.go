package transfer

import (
	"fmt"

	"xroce/engine"
	"xroce/engine/oob"
)

// formatEndpoint is an endpoint as text for a message.
func formatEndpoint(e engine.Endpoint) string {
	return string(oob.Endpoint{QPN: e.QPN, PSN: e.PSN, GID: e.GID}.AppendText(nil))
}

// parseEndpoint is the reverse of formatEndpoint.
func parseEndpoint(text string) (engine.Endpoint, error) {
	e, err := oob.Parse(text)
	if err == nil && e.GID.IsZero() {
		err = fmt.Errorf("%w: no GID in %.100q", oob.ErrMessage, text)
	}
	return engine.Endpoint{QPN: e.QPN, PSN: e.PSN, GID: e.GID}, err
}
