// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/keyservice/keyservicetest"
)

// doorsOf are doors in a directory of their own, at an address that was free.
func doorsOf(t *testing.T) (identityservice.Doors, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "d") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	account := keyservicetest.New(t).Account(t)
	return identityservice.Doors{
		Address: free.Addr().String(), Certificate: account.File, Machines: filepath.Join(dir, "m.sock"), Account: keyservice.Credential(account),
		Identity: filepath.Join(dir, "i.sock"), Here: func(caller.Caller) bool { return true }, Metadata: filepath.Join(dir, "k.sock"), Login: filepath.Join(dir, "l.sock"),
	}, dir
}

// opened opens doors, and returns how many are served, and what closes them.
func opened(t *testing.T, w *world, d identityservice.Doors) (served int, end func(), err error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	err = d.Open(ctx, w.service, w.front, func(serve func() error) {
		served++
		group.Go(func() {
			if err := serve(); err != nil {
				t.Error("a door closed with ", err)
			}
		})
	})
	return served, func() { stop(); group.Wait() }, err
}

func TestDoorsOpenAndClose(t *testing.T) {
	for vpcs, want := range map[bool]int{true: 5, false: 4} {
		d, _ := doorsOf(t)
		sockets := []string{d.Machines, d.Identity, d.Metadata, d.Login}
		if !vpcs {
			d.Machines, sockets = "", sockets[1:]
		}
		served, end, err := opened(t, newWorld(t, nil), d)
		if err != nil || served != want {
			t.Errorf("%d doors are served, %v; want %d", served, err, want)
		}
		reach := func(network, address string) error {
			connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), network, address)
			if err == nil {
				err = connection.Close()
			}
			return err
		}
		if err := reach("tcp", d.Address); err != nil {
			t.Error("people: ", err)
		}
		for _, socket := range sockets {
			var err error
			tick := time.NewTicker(5 * time.Millisecond)
			for range 1000 { // the door of the image registry opens when it is served
				if err = reach("unix", socket); err == nil {
					break
				}
				<-tick.C
			}
			tick.Stop()
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(socket), err)
			}
		}
		end()
		if err := reach("tcp", d.Address); err == nil {
			t.Error("people are let in after the end")
		}
	}
}

func TestDoorsThatCannotOpen(t *testing.T) {
	for says, change := range map[string]func(d *identityservice.Doors, dir string){
		"listening for STS and IAM: ":                       func(d *identityservice.Doors, _ string) { d.Address = "127.0.0.1:99999" },
		"reading the certificate of the identity service: ": func(d *identityservice.Doors, dir string) { d.Certificate = filepath.Join(dir, "none") },
		"listening for machines' requests of STS and IAM: ": func(d *identityservice.Doors, dir string) { d.Machines = filepath.Join(dir, "none", "m.sock") },
		"must be absolute paths":                            func(d *identityservice.Doors, _ string) { d.Account.CA = "ca.pem" },
		"a list of clusters":                                func(d *identityservice.Doors, _ string) { d.Here = nil },
		"making directory of the key service's socket: ":    func(d *identityservice.Doors, _ string) { d.Metadata = "/dev/null/k.sock" },
	} {
		d, dir := doorsOf(t)
		change(&d, dir)
		_, end, err := opened(t, newWorld(t, nil), d)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
		end() // a door that stays open does not let this return, or the address be taken again
		if again, err := new(net.ListenConfig).Listen(t.Context(), "tcp", d.Address); err == nil {
			_ = again.Close()
		} else if d.Address != "127.0.0.1:99999" {
			t.Errorf("%s leaves people's door open: %v", says, err)
		}
	}
}
