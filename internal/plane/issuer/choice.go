// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"

	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/statedir"
)

// Choice is what was asked about the host in the URLs of an account's issuers.
type Choice struct {
	// Host, with a port unless that is 443; empty for the one that was chosen before, or this host's own name.
	Host string
	// ByAddress is true when the account's address is to be the host, and nothing else; Host is empty then.
	ByAddress bool
	// Region that the account is to be in; empty for the default.
	Region string
	// Pods is true when the cluster that is to be made has nodes with pods.
	Pods bool

	// thisHost stands in for ThisHost in tests.
	thisHost func(context.Context) (string, netip.Addr, error)
}

// Check refuses a host for the issuers of a state directory that is not one, or not the account's.
func (c Choice) Check(dir statedir.Dir) error {
	if c.Host == "" && !c.ByAddress {
		return nil
	}
	if err := CheckHost(c.Host); err != nil && !c.ByAddress {
		return err
	}
	at, err := ReadEndpoint(dir.Issuers())
	in, found := region.Find(cmp.Or(c.Region, region.Default))
	switch {
	case found == nil && slices.Contains(append(in.ServiceNames(), in.RegistryName(component.DefaultAccount)), c.Host):
		return fmt.Errorf("%s is a name of the account's AWS APIs: choose one that is the issuers' alone", c.Host)
	case errors.Is(err, fs.ErrNotExist) && !account.InUse(dir):
		return nil
	case err != nil:
		return err
	case c.ByAddress && !IsAddress(at.Name()):
		return fmt.Errorf("issuers of the account in %s are at %s, not at an address, and stay there: leave out the host, or choose another --state-dir", dir, at.Host)
	case !c.ByAddress && at.Host != c.Host:
		return fmt.Errorf("issuers of the account in %s are at %s, not %s, and stay there: leave out the host, or choose another --state-dir", dir, at.Host, c.Host)
	}
	return nil
}

// Record says where the issuers of the clusters of an account answer, once: at the host that was given, else at this
// host's own name, else at the account's address; on port 443 or, where this process may not listen on that, on one of
// its own. unnamed says why it is not this host's name, if that was to be chosen and pods were to have it.
func (c Choice) Record(ctx context.Context, dir statedir.Dir, own account.Account) (unnamed, err error) {
	if _, err := ReadEndpoint(dir.Issuers()); err == nil || !errors.Is(err, fs.ErrNotExist) || account.InUse(dir) {
		return nil, err
	}
	port := DefaultPort
	if !Permitted(own.Address, port) {
		if port, err = portplan.Free(own.Address.String()); err != nil {
			return nil, err
		}
	}
	at := At(own.Address, port)
	switch {
	case c.Host != "":
		at.Host = c.Host
	case c.ByAddress || !host.AsRoot(): // there are no pods without root
	case port != DefaultPort:
		unnamed = errors.New("this process may not listen on port 443")
	default:
		thisHost := c.thisHost
		if thisHost == nil {
			thisHost = ThisHost
		}
		var name string
		if name, at.Loopback, unnamed = thisHost(ctx); unnamed == nil {
			at.Host = name
		}
	}
	if !c.Pods {
		unnamed = nil
	}
	return unnamed, WriteEndpoint(dir.Issuers(), at)
}
