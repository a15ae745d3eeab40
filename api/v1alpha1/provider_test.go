// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The marker of the type, from which the CRDs come, cannot read the table of providers.
func TestTheEnumNamesEveryProvider(t *testing.T) {
	raw, err := os.ReadFile("provider.go")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\n// +kubebuilder:validation:Enum=" + strings.Join(ProviderNames(), ";") + "\n"; !strings.Contains(string(raw), want) {
		t.Errorf("provider.go has not the marker %q", want)
	}
}

func TestProvidersThat(t *testing.T) {
	for _, c := range Capabilities() {
		able := ProvidersThat(c)
		if len(able) == 0 {
			t.Errorf("no provider can %s: code that asks for it does nothing", c)
		}
		for _, p := range Providers() {
			if can := p.Can(c); can != slices.Contains(able, p) {
				t.Errorf("provider %s can %s: %v; the providers that can are %v", p, c, can, able)
			} else if can && p.Instead(c) != "" {
				t.Errorf("provider %s can %s, and its table says what to do instead", p, c)
			}
		}
		if Provider("other").Can(c) {
			t.Errorf("an unknown provider can %s", c)
		}
		if Provider("").Can(c) != DefaultProvider.Can(c) {
			t.Errorf("an object without a provider, which the API server gives the default one, differs from it: %s", c)
		}
	}
}
