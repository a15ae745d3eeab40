// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/api/v1alpha1"
)

// Providers are the providers that a service has, by name. Code asks them by a [v1alpha1.Capability] and never by a
// name of its own: that is how another provider is used everywhere without a change of code.
type Providers map[v1alpha1.Provider]Provider

// CannotError says that machines of a provider cannot do what they are asked to, and what to do about it.
type CannotError struct {
	// Provider made the machine.
	Provider v1alpha1.Provider
	// Do is the capability that its machines lack.
	Do v1alpha1.Capability
}

// Error implements error.
func (e CannotError) Error() string {
	return fmt.Sprintf("machines of provider %s cannot %s: %s", e.Provider, e.Do, e.Instead())
}

// Instead returns what to do about it.
func (e CannotError) Instead() string {
	var able []string
	for _, p := range v1alpha1.ProvidersThat(e.Do) {
		able = append(able, string(p))
	}
	return cmp.Or(e.Provider.Instead(e.Do), "choose a provider whose machines can: "+strings.Join(able, ", "))
}

// Find returns a provider, or an error that names the provider if the service does not have it.
func (p Providers) Find(name v1alpha1.Provider) (Provider, error) {
	provider, ok := p[name]
	if !ok {
		return nil, fmt.Errorf("this service has no provider of %s machines", name)
	}
	return provider, nil
}

// Ask returns a provider as T, the interface by which its machines do something. The error is that of Find, or a
// [CannotError].
func Ask[T any](p Providers, name v1alpha1.Provider, do v1alpha1.Capability) (T, error) {
	var able T
	provider, err := p.Find(name)
	if err != nil {
		return able, err
	}
	if !name.Can(do) {
		return able, CannotError{name, do}
	}
	able, ok := As[T](provider, do)
	if !ok {
		return able, fmt.Errorf("the table of providers says that machines of %s can %s, and %T has not the methods", name, do, provider)
	}
	return able, nil
}

// Indirect is a Provider whose machines are made by another one, such as that of another host. It has the interface of
// a capability only if the other has it, and so not as methods of its own.
type Indirect interface {
	Provider
	// As returns a value with the interface of a capability, nil if the machines lack the capability.
	As(do v1alpha1.Capability) any
}

// As returns a provider as T, the interface of a capability; false if it does not have the methods.
func As[T any](provider Provider, do v1alpha1.Capability) (T, bool) {
	if indirect, ok := provider.(Indirect); ok {
		able, ok := indirect.As(do).(T)
		return able, ok
	}
	able, ok := provider.(T)
	return able, ok
}

// AskAll returns all providers of the service whose machines do something, each as T, in the order of their names.
// Providers whose machines cannot are left out.
func AskAll[T any](p Providers, do v1alpha1.Capability) ([]T, error) {
	var all []T
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !name.Can(do) {
			continue
		}
		able, err := Ask[T](p, name, do)
		if err != nil {
			return nil, err
		}
		all = append(all, able)
	}
	return all, nil
}
