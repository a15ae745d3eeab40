// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"muster.dev/muster/internal/network/loadbalancer"
)

const (
	// checkEvery is the time between two checks of a target, and checkTimeout how long one may take.
	checkEvery   = 5 * time.Second
	checkTimeout = 2 * time.Second
	// maxChecks is how many checks of one port run at a time.
	maxChecks = 16
)

// keepChecking checks the targets of the port until the context ends.
func (p *port) keepChecking(ctx context.Context) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.checkAll(ctx, *p.check.Load())
		}
	}
}

// checkAll checks each target once.
func (p *port) checkAll(ctx context.Context, check loadbalancer.Check) {
	if check.Protocol == "" {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, maxChecks)
	for _, target := range p.targets.toCheck() {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			reason := p.ask(ctx, check, target)
			if ctx.Err() == nil {
				p.targets.checked(target, reason)
			}
		})
	}
}

// ask checks one target, and returns why it is not healthy.
func (p *port) ask(ctx context.Context, check loadbalancer.Check, target netip.AddrPort) string {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if check.Port != 0 {
		target = netip.AddrPortFrom(target.Addr(), check.Port)
	}
	connection, err := p.front.server.dialer.Dial(ctx, p.front.owner.cluster, p.address, target)
	if err != nil {
		return reasonOf(err)
	}
	defer func() { _ = connection.Close() }()
	if check.Protocol != loadbalancer.CheckHTTP {
		return ""
	}
	if err := get(ctx, connection, target, check.Path); err != nil {
		return err.Error()
	}
	return ""
}

// get asks for a path over a connection of its own.
func get(ctx context.Context, connection net.Conn, target netip.AddrPort, path string) error {
	deadline, _ := ctx.Deadline()
	if err := connection.SetDeadline(deadline); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+target.String()+path, nil)
	if err != nil {
		return err
	}
	request.Close = true
	request.Header.Set("User-Agent", "muster-balancer")
	if err := request.Write(connection); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(connection, 4<<10), request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s is answered with %s", path, response.Status)
	}
	return nil
}
