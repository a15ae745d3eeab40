// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// DNSName is the name in the VPC of the balancer of a Service, in the form of AWS's: the names are cut to 8 characters, and what makes it
// unique follows from the cluster and the UID, so that it is the same whenever it is asked for.
func DNSName(cluster, namespace, service, uid, region string) string {
	sum := sha256.Sum256([]byte(cluster + "/" + uid))
	digits := hex.EncodeToString(sum[:])
	return fmt.Sprintf("k8s-%s-%s-%s-%s.elb.%s.amazonaws.com", short(namespace), short(service), digits[:10], digits[10:26], region)
}

// short is what is left of a name in one that is made of it.
func short(name string) string {
	name = strings.ReplaceAll(name, "-", "")
	return name[:min(len(name), 8)]
}

// errNoAddress means that all addresses that were tried are taken.
var errNoAddress = errors.New("no address is left on the host's loopback in " + hostRange)

// HostAddress chooses an address on the host's loopback for the Service with a UID. It is the same one for the same UID, unless it is taken.
func HostAddress(uid string, taken func(netip.Addr) bool) (netip.Addr, error) {
	for try := range 64 {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", uid, try))
		address := netip.AddrFrom4([4]byte{127, 128 | sum[0]&63, sum[1], sum[2]})
		if sum[2] == 0 || sum[2] == 255 || taken(address) { // which look like a network's and a broadcast's
			continue
		}
		return address, nil
	}
	return netip.Addr{}, errNoAddress
}
