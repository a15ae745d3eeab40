// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// DNSName is the name in the VPC of the balancer of a Service, in the form of AWS's: the names are cut to 8 characters,
// and what makes it unique follows from the cluster and the UID, so that it is the same whenever it is asked for.
func DNSName(cluster, namespace, service, uid, region string) string {
	sum := sha256.Sum256([]byte(cluster + "/" + uid))
	digits := hex.EncodeToString(sum[:])
	return fmt.Sprintf("k8s-%s-%s-%s-%s.elb.%s.amazonaws.com", short(namespace), short(service), digits[:10], digits[10:26], region)
}

// short is the part of a namespace's or Service's name that goes into a DNS name: 8 characters, without dashes.
func short(name string) string {
	name = strings.ReplaceAll(name, "-", "")
	return name[:min(len(name), 8)]
}
