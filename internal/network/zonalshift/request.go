// SPDX-License-Identifier: Apache-2.0

package zonalshift

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/region"
)

// MaxExpiry is how long a shift may last from the moment at which that is asked for. ARC's documents say three days.
const MaxExpiry = 72 * time.Hour

// MaxComment is how many characters a comment may have.
const MaxComment = 128

// Code is the class of a refusal, by the name of ARC's error.
type Code string

// The codes of refusals.
const (
	Invalid  Code = "ValidationException"
	Conflict Code = "ConflictException"
	NotFound Code = "ResourceNotFoundException"
)

// Refusal says why a request about a shift is refused.
type Refusal struct {
	Code Code
	// Reason is ARC's word for the cause; empty if it has none.
	Reason string
	// ShiftID is the shift that a conflict is with, if there is one.
	ShiftID string
	// Message is a line for people.
	Message string
}

// Error implements [error].
func (r *Refusal) Error() string { return r.Message }

func invalid(reason, format string, args ...any) error {
	return &Refusal{Code: Invalid, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Ask is what a request asks for. A member that is nil is not asked for.
type Ask struct {
	// AwayFrom is a zone by its name or id.
	AwayFrom string
	// ExpiresIn is a time such as 20h or 120m.
	ExpiresIn, Comment *string
}

var expiryPattern = regexp.MustCompile(`^([1-9][0-9]{0,3})(m|h)$`)

// expiry is the time after now that a text such as 20h stands for.
func expiry(text string, now time.Time) (metav1.Time, error) {
	match := expiryPattern.FindStringSubmatch(text)
	if match == nil {
		return metav1.Time{}, invalid("InvalidExpiresIn", "expiresIn %.20q is not a time: it must be a whole number and m or h, such as 120m or 20h", text)
	}
	number, _ := strconv.Atoi(match[1]) // four digits at most
	after := time.Duration(number) * map[string]time.Duration{"m": time.Minute, "h": time.Hour}[match[2]]
	if after > MaxExpiry {
		return metav1.Time{}, invalid("InvalidExpiresIn", "expiresIn %s is too long: a zonal shift lasts from 1m to 72h, and can be updated to last longer", text)
	}
	return metav1.NewTime(now.Add(after).Truncate(time.Second)), nil
}

// Zones are the zones that a cluster or its node groups have subnets in, of those of a region.
func Zones(of region.Region, c *v1alpha1.Cluster, groups []v1alpha1.NodeGroup, subnets []v1alpha1.Subnet) []region.Zone {
	ids := slices.Clone(c.Status.SubnetIDs)
	for i := range groups {
		ids = append(ids, groups[i].Spec.SubnetIDs...)
	}
	var zones []region.Zone
	for _, zone := range of.Zones {
		if slices.ContainsFunc(subnets, func(s v1alpha1.Subnet) bool {
			return s.Spec.AvailabilityZone == zone.Name && slices.Contains(ids, v1alpha1.SubnetID(s.Name))
		}) {
			zones = append(zones, zone)
		}
	}
	return zones
}

// find is the zone of a name or an id.
func find(zones []region.Zone, text string) (region.Zone, error) {
	if i := slices.IndexFunc(zones, func(z region.Zone) bool { return z.Name == text || z.ID == text }); i >= 0 {
		return zones[i], nil
	}
	said := make([]string, 0, len(zones))
	for _, z := range zones {
		said = append(said, z.ID+" ("+z.Name+")")
	}
	return region.Zone{}, invalid("InvalidAz", "awayFrom %.40q is not a zone of the cluster, which has %s", text, strings.Join(said, ", "))
}

// NotEnabled is the refusal of a cluster without zonal shifts.
func NotEnabled(c *v1alpha1.Cluster) error {
	return &Refusal{Code: NotFound, Message: fmt.Sprintf("cluster %s has no zonal shifts: enable them by UpdateClusterConfig with zonalShiftConfig enabled=true", c.Spec.Name)}
}

// Start returns the shift that a request asks for, with an id as its name. The zones are the cluster's, the shifts are
// all of it. The error is a *[Refusal].
func Start(id string, c *v1alpha1.Cluster, zones []region.Zone, shifts []v1alpha1.ZonalShift, ask Ask, now time.Time) (*v1alpha1.ZonalShift, error) {
	if !c.Spec.ZonalShift.On() || !c.DeletionTimestamp.IsZero() {
		return nil, NotEnabled(c)
	}
	zone, err := find(zones, ask.AwayFrom)
	if err != nil {
		return nil, err
	}
	s := &v1alpha1.ZonalShift{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: id},
		Spec:       v1alpha1.ZonalShiftSpec{ClusterName: c.Spec.Name, AwayFrom: zone.Name},
	}
	if ask.ExpiresIn == nil {
		return nil, invalid("MissingValue", "expiresIn is missing: a zonal shift must say when it ends, such as 20h")
	}
	if err := change(s, ask, now); err != nil {
		return nil, err
	}
	for i := range shifts {
		if shifts[i].PhaseAt(now) == v1alpha1.ZonalShiftActive {
			return nil, &Refusal{
				Code: Conflict, Reason: "ZonalShiftAlreadyExists", ShiftID: shifts[i].Name,
				Message: fmt.Sprintf("zonal shift %s of cluster %s away from %s is active until %s: update or cancel it", shifts[i].Name, c.Spec.Name, shifts[i].Spec.AwayFrom, shifts[i].Spec.ExpiryTime.UTC().Format(time.RFC3339)),
			}
		}
	}
	return s, nil
}

// Update changes an active shift. The error is a *[Refusal].
func Update(s *v1alpha1.ZonalShift, ask Ask, now time.Time) error {
	if err := active(s, now); err != nil {
		return err
	}
	return change(s, ask, now)
}

// Cancel ends an active shift. The error is a *[Refusal].
func Cancel(s *v1alpha1.ZonalShift, now time.Time) error {
	err := active(s, now)
	s.Spec.Canceled = s.Spec.Canceled || err == nil
	return err
}

func active(s *v1alpha1.ZonalShift, now time.Time) error {
	if phase := s.PhaseAt(now); phase != v1alpha1.ZonalShiftActive {
		return &Refusal{
			Code: Conflict, Reason: "ZonalShiftStatusNotActive", ShiftID: s.Name,
			Message: fmt.Sprintf("zonal shift %s is not active, but %s: start another one", s.Name, phase),
		}
	}
	return nil
}

func change(s *v1alpha1.ZonalShift, ask Ask, now time.Time) error {
	if ask.Comment != nil {
		if n := utf8.RuneCountInString(*ask.Comment); n > MaxComment {
			return invalid("", "the comment has %d characters: it may have %d", n, MaxComment)
		}
		s.Spec.Comment = *ask.Comment
	}
	if ask.ExpiresIn != nil {
		at, err := expiry(*ask.ExpiresIn, now)
		if err != nil {
			return err
		}
		s.Spec.ExpiryTime = at
	}
	return nil
}
