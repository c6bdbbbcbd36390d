package tokenstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

// tokenStreamReceiver is the way from the wire to the pipeline.
type tokenStreamReceiver struct {
	cfg       *Config
	settings  receiver.Settings
	telemetry *metadata.TelemetryBuilder
	intake    *intake
	requests  sync.Pool // of *request

	reportHTTP, reportGRPC, reportExpiry *receiverhelper.ObsReport

	serverHTTP *http.Server
	serverGRPC *grpc.Server
	addrHTTP   net.Addr
	addrGRPC   net.Addr

	handlingHTTP sync.RWMutex // read-locked by handlers
	cutOffHTTP   context.CancelFunc

	// closing is done when live requests have to come to an end.
	closing context.Context
	close   context.CancelFunc
	running sync.WaitGroup
}

func newReceiver(cfg *Config, set receiver.Settings, next consumer.Traces) (*tokenStreamReceiver, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	epoch := time.Now()
	store := assembly.NewStore(cfg.limits(), func() time.Duration { return time.Since(epoch) })
	r := &tokenStreamReceiver{
		cfg:       cfg,
		settings:  set,
		telemetry: telemetry,
		intake:    &intake{store: store, next: next, telemetry: telemetry},
	}
	r.requests.New = func() any { return newRequest(r.intake, cfg.MaxEventBytes) }
	r.closing, r.close = context.WithCancel(context.Background())
	for transport, report := range map[string]**receiverhelper.ObsReport{
		"http":   &r.reportHTTP,
		"grpc":   &r.reportGRPC,
		"expiry": &r.reportExpiry,
	} {
		*report, err = receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
			ReceiverID:             set.ID,
			Transport:              transport,
			ReceiverCreateSettings: set,
		})
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Start opens the ways in.
func (r *tokenStreamReceiver) Start(ctx context.Context, host component.Host) error {
	if err := errors.Join(r.observe(), r.startGRPC(ctx, host), r.startHTTP(ctx, host)); err != nil {
		// What did start must not be left behind.
		return errors.Join(err, r.Shutdown(ctx))
	}
	r.running.Go(r.sweep)
	return nil
}

// Shutdown closes the ways in, gives requests under way a little time to finish,
// and hands over all open streams as incomplete.
func (r *tokenStreamReceiver) Shutdown(ctx context.Context) error {
	r.close()
	err := r.stopServers(ctx)
	r.running.Wait()
	err = errors.Join(err, r.flush(ctx))
	r.telemetry.Shutdown()
	return err
}

// observe registers the gauges.
func (r *tokenStreamReceiver) observe() error {
	gauge := func(value func() int64) metric.Int64Callback {
		return func(_ context.Context, observer metric.Int64Observer) error {
			observer.Observe(value())
			return nil
		}
	}
	limits := r.cfg.limits()
	return errors.Join(
		r.telemetry.RegisterReceiverTokenStreamStreamsOpenCallback(gauge(r.intake.store.Streams)),
		r.telemetry.RegisterReceiverTokenStreamStreamsLimitCallback(gauge(func() int64 { return int64(limits.MaxStreams) })),
		r.telemetry.RegisterReceiverTokenStreamMemoryHeldCallback(gauge(r.intake.store.Memory)),
		r.telemetry.RegisterReceiverTokenStreamMemoryLimitCallback(gauge(func() int64 { return limits.MaxMemory })),
	)
}

// serve runs a server until it is stopped.
func (r *tokenStreamReceiver) serve(host component.Host, name string, listener net.Listener, serve func(net.Listener) error, stopped error) {
	r.settings.Logger.Info("Starting "+name+" server", zap.String("endpoint", listener.Addr().String()))
	r.running.Go(func() {
		if err := serve(listener); err != nil && !errors.Is(err, stopped) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
}

// requestPatience is how long requests under way may go on at shutdown. The
// Collector sets no limit, so one client that stalls would hold it up for good.
const requestPatience = 5 * time.Second

// stopServers stops the servers. Once it returns, no request is under way.
func (r *tokenStreamReceiver) stopServers(ctx context.Context) error {
	patience := requestPatience
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2) // the rest is for the open streams
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var stopping sync.WaitGroup
	stopping.Go(func() { r.stopGRPC(ctx) })
	err := r.stopHTTP(ctx)
	stopping.Wait()
	if ctx.Err() != nil {
		r.settings.Logger.Warn("Clients that were not done in time are cut off")
	}
	return err
}

// sweep expires streams until the receiver closes.
func (r *tokenStreamReceiver) sweep() {
	ticker := time.NewTicker(min(max(r.cfg.IdleTimeout/10, time.Millisecond), time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-r.closing.Done():
			return
		case <-ticker.C:
			if err := r.intake.expire(r.closing, r.reportExpiry, r.cfg.IdleTimeout); err != nil {
				r.settings.Logger.Warn("Streams that are over stay open until the next try", zap.Error(err))
			}
		}
	}
}

const (
	flushPatience = time.Second
	flushPause    = 50 * time.Millisecond
)

// flush hands over all open streams. A pipeline that refuses them is given a
// little time to change its mind, not longer than ctx allows.
func (r *tokenStreamReceiver) flush(ctx context.Context) error {
	giveUp := time.After(flushPatience)
	for {
		err := r.intake.expire(ctx, r.reportExpiry, 0)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(flushPause):
			continue
		case <-giveUp:
		case <-ctx.Done():
		}
		lost := r.intake.store.Streams()
		r.intake.lost(context.WithoutCancel(ctx), lost, "shutdown")
		return fmt.Errorf("%d open streams are lost: %w", lost, err)
	}
}
