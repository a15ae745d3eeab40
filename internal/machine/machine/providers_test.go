// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/fake"
)

// dialer is a provider with a method more.
type dialer struct{ *fake.Provider }

func (dialer) DialInside(context.Context, string, string, string) (net.Conn, error) {
	return nil, errors.New("nothing is dialled")
}

func TestAsk(t *testing.T) {
	both := machine.Providers{v1alpha1.ProviderLocal: dialer{}, v1alpha1.ProviderSimulated: dialer{}}
	const cannot = "machines of provider simulated cannot join a network: choose a provider whose machines can: local"
	for name, c := range map[string]struct {
		providers machine.Providers
		asked     v1alpha1.Provider
		want      string
	}{
		"can":                         {both, v1alpha1.ProviderLocal, ""},
		"cannot, whatever it has":     {both, v1alpha1.ProviderSimulated, cannot},
		"unknown":                     {both, "other", "this service has no provider of other machines"},
		"without root":                {machine.Providers{}, v1alpha1.ProviderLocal, "this service has no provider of local machines"},
		"declared and not programmed": {machine.Providers{v1alpha1.ProviderLocal: new(fake.Provider)}, v1alpha1.ProviderLocal, "the table of providers says that machines of local can join a network, and *fake.Provider has not the methods"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := machine.Ask[machine.Dialer](c.providers, c.asked, v1alpha1.JoinNetwork)
			if got := text(err); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	for do, want := range map[v1alpha1.Capability]string{
		v1alpha1.RunPods:   "machines of provider simulated cannot run pods: choose a provider whose machines can: local",
		v1alpha1.KeepLogs:  "machines of provider simulated cannot keep logs: muster logs simulator",
		v1alpha1.OpenShell: "machines of provider simulated cannot open a shell: it only speaks the protocol of a node; local machines have one",
	} {
		if got := (machine.CannotError{Provider: v1alpha1.ProviderSimulated, Do: do}).Error(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestAskAll(t *testing.T) {
	providers := machine.Providers{v1alpha1.ProviderLocal: dialer{}, v1alpha1.ProviderSimulated: dialer{}}
	if all, err := machine.AskAll[machine.Dialer](providers, v1alpha1.JoinNetwork); err != nil || len(all) != 1 {
		t.Errorf("dialers: %v, %v; want the local one", all, err)
	}
	if all, err := machine.AskAll[machine.Mounter](providers, v1alpha1.MountVolumes); err == nil {
		t.Errorf("mounters: %v; want an error for methods that are missing", all)
	}
	delete(providers, v1alpha1.ProviderLocal)
	if all, err := machine.AskAll[machine.Mounter](providers, v1alpha1.MountVolumes); err != nil || len(all) > 0 {
		t.Errorf("mounters without root: %v, %v; want none", all, err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
