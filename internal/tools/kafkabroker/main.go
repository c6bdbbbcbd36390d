// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Command kafkabroker runs one broker of franz-go's kfake, for tests. It speaks
// Kafka's protocol and keeps records in memory. It is not Apache Kafka.
//
//	kafkabroker ADDRESS TOPIC PARTITIONS GROUP
//
// Kafka clients connect to the first port that it prints. An HTTP GET to ADDRESS
// returns the offsets of GROUP as JSON, by partition.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// offsets are those of one partition.
type offsets struct {
	Consumer  string // client ID of the member that the partition is assigned to
	Committed int64  // records that the group committed
	Produced  int64
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: kafkabroker ADDRESS TOPIC PARTITIONS GROUP")
	}
	address, topic, group := os.Args[1], os.Args[2], os.Args[4]
	partitions, err := strconv.ParseInt(os.Args[3], 10, 32)
	if err != nil {
		log.Fatal(err)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(int32(partitions), topic))
	if err != nil {
		log.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		log.Fatal(err)
	}
	admin := kadm.NewClient(client)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewEncoder(w).Encode(lag(r, admin, topic, group)); err != nil {
			log.Print(err)
		}
	})
	fmt.Println(cluster.ListenAddrs()[0])
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: time.Second}
	log.Fatal(server.ListenAndServe())
}

func lag(r *http.Request, admin *kadm.Client, topic, group string) map[int32]offsets {
	lags, err := admin.Lag(r.Context(), group)
	if err != nil {
		log.Print(err)
	}
	all := map[int32]offsets{}
	for partition, of := range lags[group].Lag[topic] {
		known := offsets{Committed: max(of.Commit.At, 0), Produced: of.End.Offset}
		if of.Member != nil {
			known.Consumer = of.Member.ClientID
		}
		all[partition] = known
	}
	return all
}
