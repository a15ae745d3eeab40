// SPDX-License-Identifier: Apache-2.0

package promise

// Promise is a row of docs/promises.md. Only this package makes promises, so that no story measures a figure that no
// page states.
type Promise struct{ id string }

// String returns the id of the row.
func (p Promise) String() string { return p.id }

// The promises, in the order of the page.
var (
	AccessRevoked            = Promise{"access-revoked"}
	AccessEntryRemoved       = Promise{"access-entry-removed"}
	AccessRevokedAPIServer   = Promise{"access-revoked-api-server"}
	AccessRevokedAfterOutage = Promise{"access-revoked-after-outage"}
	TokensAfterOutage        = Promise{"tokens-after-outage"}
	PodSessionEnded          = Promise{"pod-session-ended"}
	PortOpened               = Promise{"port-opened"}
	PortClosed               = Promise{"port-closed"}
	WayOutChanged            = Promise{"way-out-changed"}
	SubnetDeleted            = Promise{"subnet-deleted"}
	VolumeGrown              = Promise{"volume-grown"}
	LeaderFenced             = Promise{"leader-fenced"}
	LeaderReplaced           = Promise{"leader-replaced"}
	AuthenticatorBack        = Promise{"authenticator-back"}
	FrontBack                = Promise{"front-back"}
	BalancerBack             = Promise{"balancer-back"}
	NetworkBack              = Promise{"network-back"}
	WayOutBack               = Promise{"way-out-back"}
	ServiceBack              = Promise{"service-back"}
)

// All returns every promise, in the order of the page.
func All() []Promise {
	return []Promise{
		AccessRevoked, AccessEntryRemoved, AccessRevokedAPIServer, AccessRevokedAfterOutage, TokensAfterOutage, PodSessionEnded,
		PortOpened, PortClosed, WayOutChanged, SubnetDeleted, VolumeGrown, LeaderFenced, LeaderReplaced,
		AuthenticatorBack, FrontBack, BalancerBack, NetworkBack, WayOutBack, ServiceBack,
	}
}
