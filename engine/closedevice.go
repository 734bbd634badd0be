package engine

import "errors"

// This file ends devices.

// Close destroys everything and gives the link back. It is idempotent.
func (d *Device) Close() error {
	d.closeOnce.Do(func() {
		for _, driver := range d.drivers {
			driver.close()
			driver.queue.turns.close(driver.queue)
		}
		d.services.halt()
		// The links first: nothing raises an event any more then.
		d.closeErr = errors.Join(d.closeLinks(), d.closeChannels())
		d.services.halt() // one that began meanwhile
		d.services.fail(d.failure())
		d.watching.Wait()
		d.syncs.close()
		d.paging.pager.Close()
		d.closeErr = errors.Join(d.closeErr, d.async.close())
	})
	return d.closeErr
}

// closeLinks ends all QPs and gives the links and what is around them back.
func (d *Device) closeLinks() error {
	d.lockQueues()
	defer d.unlockQueues()
	// What the peer is owed goes out before the connections do.
	for range 2 {
		for _, q := range d.queues {
			q.progress()
		}
	}
	for _, qp := range d.qps.All {
		qp.home().sendOwed(qp)
	}
	var errs []error
	for _, q := range d.queues {
		q.fail(ErrClosed)
	}
	if d.rules != nil {
		errs = append(errs, d.rules.Close())
	}
	if d.program != nil {
		errs = append(errs, d.program.Close())
	}
	for _, q := range d.queues {
		errs = append(errs, q.close())
	}
	return errors.Join(append(errs, d.host.Close())...)
}

// closeChannels closes all completion channels, with CQs or without.
func (d *Device) closeChannels() error {
	d.channels.Lock()
	open := d.channels.open
	d.channels.open = nil
	d.channels.Unlock()
	var errs []error
	for c := range open {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}
