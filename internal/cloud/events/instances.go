// SPDX-License-Identifier: Apache-2.0

package events

import (
	"time"

	"muster.dev/muster/internal/aws/arn"
)

// The sources of the account's own events.
const (
	sourceEC2    = "aws.ec2"
	sourceHealth = "aws.health"
)

// Instance is an instance that an event is about.
type Instance struct{ ID, Zone, Region, Account string }

func (i Instance) arn(place string) string {
	return arn.ARN{Partition: "aws", Service: "ec2", Region: place, Account: i.Account, Resource: "instance/" + i.ID}.String()
}

// StateChange is the event that an instance is in a state: pending, running, stopping, stopped, shutting-down or
// terminated.
func StateChange(i Instance, state string, now time.Time) Event {
	return Event{Source: sourceEC2, DetailType: "EC2 Instance State-change Notification", Time: now, Resources: []string{i.arn(i.Region)}, Detail: struct {
		InstanceID string `json:"instance-id"`
		State      string `json:"state"`
	}{i.ID, state}}
}

// SpotInterruption is the event that a spot instance will be interrupted, as EC2 sends it two minutes before.
func SpotInterruption(i Instance, now time.Time) Event {
	return Event{Source: sourceEC2, DetailType: "EC2 Spot Instance Interruption Warning", Time: now, Resources: []string{"arn:aws:ec2:" + i.Zone + ":instance/" + i.ID}, Detail: struct {
		InstanceID string `json:"instance-id"`
		Action     string `json:"instance-action"`
	}{i.ID, "terminate"}}
}

// Rebalance is the event that a spot instance is likely to be interrupted.
func Rebalance(i Instance, now time.Time) Event {
	return Event{Source: sourceEC2, DetailType: "EC2 Instance Rebalance Recommendation", Time: now, Resources: []string{"arn:aws:ec2:" + i.Zone + ":instance/" + i.ID}, Detail: struct {
		InstanceID string `json:"instance-id"`
	}{i.ID}}
}

// entity is something that an event of AWS Health is about.
type entity struct {
	Value string `json:"entityValue"`
}

// healthText is a text of an event of AWS Health.
type healthText struct {
	Language string `json:"language"`
	Latest   string `json:"latestDescription"`
}

// healthDetail is the detail of an event of AWS Health.
type healthDetail struct {
	EventARN     string       `json:"eventArn"`
	Service      string       `json:"service"`
	TypeCode     string       `json:"eventTypeCode"`
	TypeCategory string       `json:"eventTypeCategory"`
	StartTime    string       `json:"startTime"`
	Description  []healthText `json:"eventDescription"`
	Entities     []entity     `json:"affectedEntities"`
}

// ScheduledChange is the event of AWS Health that an instance will be retired at a time.
func ScheduledChange(i Instance, begins, now time.Time) Event {
	const code = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"
	return Event{Source: sourceHealth, DetailType: "AWS Health Event", Time: now, Resources: []string{i.ID}, Detail: healthDetail{
		EventARN: "arn:aws:health:" + i.Region + "::event/EC2/" + code + "/" + i.ID, Service: "EC2", TypeCode: code, TypeCategory: "scheduledChange",
		StartTime: begins.UTC().Format(time.RFC1123), Description: []healthText{{"en_US", "The instance " + i.ID + " will be retired."}}, Entities: []entity{{i.ID}},
	}}
}
