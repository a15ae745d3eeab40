// SPDX-License-Identifier: Apache-2.0

package portplan

import (
	"net/netip"

	"muster.dev/muster/internal/plane/component"
)

// loopback is the only address that anything outside the VPC listens on.
const loopback = "127.0.0.1"

// AccountPorts on the loopback address, chosen once and kept.
type AccountPorts struct {
	ManagementEtcd     int `json:"managementEtcd"`
	ManagementEtcdPeer int `json:"managementEtcdPeer"`
	Management         int `json:"management"`        // of the front
	ManagementServer0  int `json:"managementServer0"` // behind it
	ManagementServer1  int `json:"managementServer1"`
	Identity           int `json:"identity"` // STS and IAM, answered by the service itself
	Registry           int `json:"registry"` // images, for people
}

// Ports of a cluster on the loopback address, chosen once and kept.
type Ports struct {
	Etcd                  int `json:"etcd"`
	EtcdPeer              int `json:"etcdPeer"`
	Published             int `json:"apiServer"`  // of the front
	APIServer0            int `json:"apiServer0"` // behind it
	APIServer1            int `json:"apiServer1"`
	APIServer2            int `json:"apiServer2"`
	ControllerManager     int `json:"controllerManager"`
	Scheduler             int `json:"scheduler"`
	CertificateController int `json:"certificateController"` // health
	// CertificateControllerMetrics is for those who may get /metrics from the API server.
	CertificateControllerMetrics int `json:"certificateControllerMetrics"`
	// CertificateControllerAuthorization is for the API server, which asks about requests of nodes.
	CertificateControllerAuthorization int `json:"certificateControllerAuthorization"`
	Authenticator                      int `json:"authenticator"`
	PodWebhook                         int `json:"podWebhook"`
	PodWebhookMetrics                  int `json:"podWebhookMetrics"`
	PodWebhookHealth                   int `json:"podWebhookHealth"`
	TokenSigner                        int `json:"tokenSigner"` // for the account
}

// OnLoopback is the place of a component that listens on a port of the loopback address. The port is 0 if none has been
// chosen.
func OnLoopback(port int) component.Place {
	return component.At(netip.AddrPortFrom(netip.MustParseAddr(loopback), uint16(port))) //nolint:gosec // G115: a port
}

// Places are where the account's own components are.
func (p AccountPorts) Places() component.AccountPlaces {
	return component.AccountPlaces{
		Management:         OnLoopback(p.Management),
		ManagementServer0:  OnLoopback(p.ManagementServer0),
		ManagementServer1:  OnLoopback(p.ManagementServer1),
		ManagementEtcd:     OnLoopback(p.ManagementEtcd),
		ManagementEtcdPeer: OnLoopback(p.ManagementEtcdPeer),
		Identity:           OnLoopback(p.Identity),
		Registry:           OnLoopback(p.Registry),
	}
}

// Places are where the components of a cluster are.
func (p Ports) Places() component.Places {
	return component.Places{
		Published:                          OnLoopback(p.Published),
		APIServer0:                         OnLoopback(p.APIServer0),
		APIServer1:                         OnLoopback(p.APIServer1),
		APIServer2:                         OnLoopback(p.APIServer2),
		Etcd:                               OnLoopback(p.Etcd),
		EtcdPeer:                           OnLoopback(p.EtcdPeer),
		ControllerManager:                  OnLoopback(p.ControllerManager),
		Scheduler:                          OnLoopback(p.Scheduler),
		CertificateController:              OnLoopback(p.CertificateController),
		CertificateControllerMetrics:       OnLoopback(p.CertificateControllerMetrics),
		CertificateControllerAuthorization: OnLoopback(p.CertificateControllerAuthorization),
		Authenticator:                      OnLoopback(p.Authenticator),
		PodWebhook:                         OnLoopback(p.PodWebhook),
		PodWebhookMetrics:                  OnLoopback(p.PodWebhookMetrics),
		PodWebhookHealth:                   OnLoopback(p.PodWebhookHealth),
		TokenSigner:                        OnLoopback(p.TokenSigner),
	}
}
