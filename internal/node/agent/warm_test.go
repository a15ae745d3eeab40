// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/node/imds"
)

// pooled is a metadata service for a machine of an Auto Scaling group, whose state may change.
type pooled struct {
	launched

	mutex sync.Mutex
	state string
}

func (p *pooled) Lookup(address netip.Addr) (imds.Instance, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	instance, err := p.launched.Lookup(address)
	instance.Scaled, instance.Lifecycle = true, p.state
	return instance, err
}

func (p *pooled) becomes(state string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.state = state
}

// A machine of a warm pool reports that it has booted, waits until it is in service, and hears what it is told by then. A machine
// that is in service at once makes no report.
func TestEntersService(t *testing.T) {
	disk := diskOf(t)
	reported := func() string {
		root, err := os.OpenRoot(disk)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = root.Close() }()
		report, _ := bootreport.Read(root)
		return report.Reason
	}
	prepared := 0
	prepare := func() {
		if prepared++; reported() != "" {
			t.Error("it says that it has booted before all is prepared")
		}
	}
	p, a := &pooled{}, newAgent(t)
	a.metadata = imds.NewClient(serveMetadata(t, imds.ServerConfig{Directory: p}))
	var err error
	if a.reports, err = bootreport.Create(filepath.Join(disk, bootreport.Path)); err != nil {
		t.Fatal(err)
	}
	if !entersService(t.Context(), a, prepare) || prepared > 0 || reported() != "" {
		t.Fatalf("in service, it reports %q", reported())
	}
	p.becomes("Warmed:Running")
	ctx, end := context.WithCancel(t.Context())
	entered := make(chan bool, 1)
	go func() { entered <- entersService(ctx, a, prepare) }()
	for deadline := time.Now().Add(patience); reported() != bootreport.Warmed; <-time.After(warmInterval) {
		if time.Now().After(deadline) {
			t.Fatal("it does not report that it has booted")
		}
	}
	select {
	case <-entered:
		t.Fatal("it does not wait")
	case <-time.After(3 * warmInterval):
	}
	p.set([]byte{0x1f, 0x8b, 0}) // which nothing can be made of: it goes on with what it was told before
	p.becomes("")
	select {
	case goes := <-entered:
		if !goes || reported() != "" || prepared != 1 {
			t.Errorf("goes on: %v, and reports %q, prepared %d times", goes, reported(), prepared)
		}
	case <-time.After(patience):
		t.Fatal("it does not go on")
	}
	if told := a.heard.userData; len(told) != 3 {
		t.Errorf("it has heard %q", told)
	}
	p.becomes("Warmed:Stopped")
	end()
	if entersService(ctx, a, prepare) {
		t.Error("it enters service on a machine that ends")
	}
}

// A machine that waits in a warm pool goes on to import images that could not be, and it imports none again when it enters service.
func TestWarmMachineGoesOnWithItsImages(t *testing.T) {
	a, p := newAgent(t), &pooled{state: "Warmed:Running"}
	a.metadata = imds.NewClient(serveMetadata(t, imds.ServerConfig{Directory: p}))
	images := filepath.Join(a.config.BinDir, "images")
	if err := os.Mkdir(images, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(images, "addon.tar"), []byte("addon"), 0o600); err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(a.config.DataDir, "calls")
	script(t, a, "ctr", `echo import >> `+calls+`; [ "$(wc -l < `+calls+`)" -gt 1 ]`)
	ctx, end := context.WithTimeout(t.Context(), patience)
	defer end()
	others, entered := a.newShippedImages().others(ctx), make(chan bool, 1)
	go func() { entered <- entersService(ctx, a, others) }()
	if !poll(ctx, 5*time.Millisecond, func() bool { return exists(filepath.Join(a.config.DataDir, "imported-addon")) }) {
		t.Fatal("it waits without its image")
	}
	p.becomes("")
	if !<-entered {
		t.Fatal("it does not enter service")
	}
	others()
	if raw, err := os.ReadFile(calls); err != nil || len(raw) != 2*len("import\n") {
		t.Errorf("%s %v", raw, err)
	}
}
