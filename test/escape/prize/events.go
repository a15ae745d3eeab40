// SPDX-License-Identifier: Apache-2.0

package prize

import (
	"os"
	"strings"
	"time"
)

// tick is how often something happens on the host that attacks listen for.
const tick = 25 * time.Millisecond

// synthetic is what a uevent of somebody's own making begins with (Documentation/ABI/testing/sysfs-uevent).
const synthetic = "change 6f1c1b8e-6c1f-4f0e-9d52-0f2a51cc6b1f TOKEN="

// plantEvents opens the host's file and sends uevents of the canary device until Close.
func (p *Planted) plantEvents(string) error {
	p.Map.HostTicks = true
	uevent := ""
	if p.Map.CanaryDevice != "" {
		uevent = "/sys/dev/block/" + p.Map.CanaryDevice + "/uevent"
		// Uevents of values are taken since Linux 4.13.
		p.Map.HostUevents = os.WriteFile(uevent, []byte(synthetic+p.Token), 0) == nil
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			if raw, err := os.ReadFile(p.Map.HostFile); err != nil || !strings.Contains(string(raw), p.Token) {
				return // somebody has taken it away; Close does not mind
			}
			if p.Map.HostUevents {
				_ = os.WriteFile(uevent, []byte(synthetic+p.Token), 0) // the device goes when Close wants it
			}
		}
	}()
	p.later(func() error {
		close(stop)
		<-stopped
		return nil
	})
	return nil
}
