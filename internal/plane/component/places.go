// SPDX-License-Identifier: Apache-2.0

package component

import "net/netip"

// Place is where a component listens, and where others reach it. Package portplan makes the places of all components:
// on the host that the service runs on both are the same.
type Place struct{ Listen, Reach netip.AddrPort }

// At is the place of a component that is reached where it listens.
func At(address netip.AddrPort) Place { return Place{Listen: address, Reach: address} }

// URL is where a component is asked by TLS.
func (p Place) URL() string { return "https://" + p.Reach.String() }

// Places of a cluster's components: one for each listener.
type Places struct {
	// Published is where people, machines and the plane's own components reach the cluster's API: at the front of its API
	// servers, which have places of their own.
	Published                          Place
	APIServer0, APIServer1, APIServer2 Place
	Etcd, EtcdPeer                     Place
	ControllerManager, Scheduler       Place
	CertificateController              Place // health
	CertificateControllerMetrics       Place // for those who may get /metrics from the API server
	CertificateControllerAuthorization Place // for the API server, which asks about requests of nodes
	Authenticator                      Place
	PodWebhook                         Place
	PodWebhookMetrics                  Place
	PodWebhookHealth                   Place
	TokenSigner                        Place // for the account
}

// APIServer is the place of the API server in a slot.
func (p Places) APIServer(slot int) Place {
	return [APIServers]Place{p.APIServer0, p.APIServer1, p.APIServer2}[slot]
}

// ManagementServer is the place of the management plane's API server in a slot.
func (p AccountPlaces) ManagementServer(slot int) Place {
	return [ManagementServers]Place{p.ManagementServer0, p.ManagementServer1}[slot]
}

// AccountPlaces are the places of the account's own components.
type AccountPlaces struct {
	// Management is where the management plane is reached: at the front of its API servers, which have places of their own.
	Management                         Place
	ManagementServer0                  Place
	ManagementServer1                  Place
	ManagementEtcd, ManagementEtcdPeer Place
	Identity                           Place // STS and IAM, answered by the service itself
	Registry                           Place // images, for people
}
