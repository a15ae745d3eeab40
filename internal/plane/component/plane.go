// SPDX-License-Identifier: Apache-2.0

package component

import "muster.dev/muster/internal/platform/statedir"

// Plane is a control plane whose API servers stand behind a front, as a rollout of them knows it (package planerollout).
type Plane struct {
	// Specs are its components, in the order they are best started and shown, with one API server, in the first slot.
	Specs []Spec
	// Servers has the API server of each slot, and Places has where each of them is.
	Servers []Spec
	Places  []Place
	// Replicas is how many of them are to serve.
	Replicas int
	// Record is the path of what the plane is made of now, while it changes.
	Record string
	// FrontServers is the path of the file from which the front knows the API servers (package frontservers).
	FrontServers string
}

// ClusterPlane is the plane of a cluster.
func ClusterPlane(c Config) (Plane, error) {
	specs, err := Specs(c)
	if err != nil {
		return Plane{}, err
	}
	plane := Plane{Specs: specs, Replicas: c.Cluster.Spec.ControlPlane.Servers(), Record: c.Dir.PlaneRecord(), FrontServers: c.FrontServers()}
	for slot := range APIServers {
		server, err := APIServerSpec(c, slot)
		if err != nil {
			return Plane{}, err
		}
		plane.Servers, plane.Places = append(plane.Servers, server), append(plane.Places, c.Places.APIServer(slot))
	}
	return plane, nil
}

// ManagementPlane is the management plane of the account.
func ManagementPlane(a Account) Plane {
	plane := Plane{Specs: ManagementSpecs(a), Replicas: 1, Record: statedir.Management(a.State).PlaneRecord(), FrontServers: a.ManagementFrontServers()}
	for slot := range ManagementServers {
		plane.Servers, plane.Places = append(plane.Servers, managementServer(a, slot)), append(plane.Places, a.Places.ManagementServer(slot))
	}
	return plane
}
