// SPDX-License-Identifier: Apache-2.0

package component

import "strings"

// webhookProxy dials for the API server what upstream counts to the network "controlplane" (package webhookproxy).
func webhookProxy(c Config) (Spec, error) {
	socket := c.State.ControlPlaneSocket(c.Dir.Namespace())
	values := map[string]string{"own": strings.Join(c.ownWebhooks(), ","), "socket": socket}
	if c.VPC {
		values["vpc-socket"] = c.State.WebhookSocket(c.Dir.Namespace())
	}
	return Spec{
		Name:        WebhookProxy,
		Path:        c.program("muster-webhook-proxy"),
		Args:        flags(values),
		Directories: []string{c.State.Run()},
		Probe:       &Probe{URL: "http://webhook-proxy/readyz", Socket: socket},
	}, nil
}

// ownWebhooks are the account's own ports on the host that the API server's flags and files name: of TokenReviews, of
// SubjectAccessReviews about nodes, and of the pod identity webhook. Each refuses clients without a certificate. The
// other addresses in the API server's flags are etcd's, which upstream dials by itself, and sockets.
func (c Config) ownWebhooks() []string {
	own := []string{c.Places.Authenticator.Reach.String(), c.Places.CertificateControllerAuthorization.Reach.String()}
	if c.VPC {
		own = append(own, c.Places.PodWebhook.Reach.String())
	}
	return own
}
