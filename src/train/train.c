/* The training loop. Ranks agree on errors and on stopping at the boundaries: opened, batch loaded, checkpoint; never inside a step. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "grove/core.h"
#include "train/network_impl.h"
#include "train/run_files.h"

enum { ORDER_STREAM = 1 << 20, BATCHES_AHEAD = 2 };

typedef struct trainer {
    const grv_train_config *config;
    grv_comm *comm; /* NULL on a single rank */
    grv_log *log;
    grv_stop_asked *stop_asked;
    void *stop_argument;
    grv_dataset *data;
    grv_split split;
    grv_network *network, *validation; /* one parameter block */
    grv_optimizer *optimizer;
    grv_loader *loader;
    grv_schedule schedule;
    grv_train_state state;
    int64_t *order;         /* [training samples] of the epoch */
    int64_t *rank_samples;  /* of the epoch, for the loader */
    char *checkpoint_path, *best_path;
    int64_t steps_per_epoch;
    bool traced;
} trainer;

static bool is_root(const trainer *t) { return t->comm == NULL || grv_comm_rank(t->comm) == 0; }
static grv_status agree(const trainer *t, grv_status status) { return t->comm == NULL ? status : grv_comm_agree(t->comm, status); }

/* --- setting up --- */

static grv_status make_networks(trainer *t)
{
    const grv_train_config *const c = t->config;
    const int n_ranks = t->comm == NULL ? 1 : grv_comm_size(t->comm);
    grv_network_params p = {.batch = c->batch, .n_data = c->n_data, .n_domain = c->n_domain, .n_threads = c->threads, .gradients = true, .loss = true};
    if (p.n_domain == 0) p.n_domain = n_ranks / p.n_data;
    if (p.n_threads == 0) p.n_threads = (int)grvi_max_i64(1, grv_threads_available() / n_ranks);
    GRV_CHECK(p.n_domain >= 1 && (int64_t)p.n_data * p.n_domain == n_ranks, GRV_E_CONFIG, "mesh: data %d x domain %d is not the number of ranks, %d",
              p.n_data, c->n_domain, n_ranks);
    GRV_TRY(grv_train_network(c, grv_dataset_get_desc(t->data), &p.fno));
    GRV_TRY(grv_network_create(&p, t->comm, NULL, &t->network));
    p.gradients = false;
    p.batch = p.n_data;
    return t->split.validation.count == 0 ? GRV_OK : grv_network_create(&p, t->comm, t->network, &t->validation);
}

/* a missing or failed sample is found before the first step */
static grv_status check_samples(const trainer *t)
{
    const int64_t n = grv_dataset_get_desc(t->data)->n_samples, n_used = t->split.train.count + t->split.validation.count;
    uint8_t *status = NULL;
    GRV_TRY(GRVI_ALLOC(&status, n));
    grv_status result = grv_dataset_status(t->data, status);
    for (int64_t i = 0; result == GRV_OK && i < n_used; i++)
        if (status[i] != GRV_SAMPLE_DONE) /* reading it tells why */
            result = grv_dataset_read(t->data, i, 0, 1, NULL, NULL);
    for (int64_t i = 0; result == GRV_OK && i < n_used; i++)
        if (status[i] != GRV_SAMPLE_DONE) result = grvi_fail(GRV_E_NOT_FOUND, __FILE__, __LINE__, __func__, "sample %lld of '%s' is not there", (long long)i, t->config->data);
    grv_free(status);
    return result;
}

static grv_status open_data(trainer *t)
{
    const grv_train_config *const c = t->config;
    GRV_TRY(grv_dataset_open(c->data, NULL, &t->data));
    GRV_TRY(grv_train_split(c, grv_dataset_get_desc(t->data)->n_samples, &t->split));
    GRV_CHECK(t->split.train.count >= c->batch, GRV_E_CONFIG, "batch: at most the %lld training samples, %lld found",
              (long long)t->split.train.count, (long long)c->batch);
    GRV_TRY(check_samples(t));
    t->steps_per_epoch = t->split.train.count / c->batch;
    GRV_TRY(GRVI_ALLOC(&t->order, t->split.train.count));
    GRV_TRY(GRVI_ALLOC(&t->rank_samples, t->split.train.count));
    GRV_TRY(grvi_fs_join(c->run, "checkpoint", &t->checkpoint_path));
    return grvi_fs_join(c->run, "best", &t->best_path);
}

static grv_status make_schedule(trainer *t)
{
    const grv_train_config *const c = t->config;
    t->schedule = (grv_schedule){.kind = (grv_schedule_kind)c->schedule, .rate = c->lr, .factor = c->schedule_factor,
                                 .period_epochs = c->schedule_period, .min_rate = c->schedule_min_lr, .warmup_steps = c->warmup_steps,
                                 .total_steps = grvi_max_i64(c->warmup_steps + 1, c->epochs * t->steps_per_epoch)};
    return grv_schedule_check(&t->schedule);
}

static grv_status set_up(trainer *t)
{
    const grv_train_config *const c = t->config;
    GRV_TRY(agree(t, open_data(t)));
    GRV_TRY(agree(t, make_schedule(t)));
    GRV_TRY(make_networks(t));
    const grv_optimizer_params p = {.kind = (grv_optimizer_kind)c->optimizer, .beta1 = c->beta1, .beta2 = c->beta2, .epsilon = c->epsilon,
                                    .weight_decay = c->weight_decay, .clip_norm = c->clip_norm};
    grv_status status = grv_optimizer_create(&p, t->network, t->comm, &t->optimizer);
    const grv_loader_params loader = {.planes = grv_network_planes(t->network), .batch = c->batch / c->n_data, .n_ahead = BATCHES_AHEAD};
    if (status == GRV_OK) status = grv_loader_create(t->data, &loader, &t->loader);
    if (status == GRV_OK && is_root(t)) status = grvi_run_open(c, t->network, t->log);
    GRV_TRY(agree(t, status));
    const bool resumes = c->resume && grv_checkpoint_exists(t->checkpoint_path);
    /* every rank asks the file system, rank 0 decides */
    int64_t resume = resumes;
    if (t->comm != NULL) GRV_TRY(grv_comm_broadcast(t->comm, 0, &resume, sizeof resume));
    grv_error_clear();
    if (!resume) return agree(t, grv_network_initialise(t->network, (uint64_t)c->seed));
    GRV_TRY(grv_checkpoint_load(t->checkpoint_path, t->network, t->optimizer, &t->state, t->comm));
    GRV_CHECK(t->state.step_in_epoch < t->steps_per_epoch, GRV_E_CONFIG,
              "resuming from %s: it is %lld steps into an epoch that has %lld with this batch and these samples", t->checkpoint_path,
              (long long)t->state.step_in_epoch, (long long)t->steps_per_epoch);
    grv_log_message(t->log, GRV_LOG_INFO, "resuming after epoch %lld, step %lld", (long long)t->state.epoch, (long long)t->state.step_in_epoch);
    return GRV_OK;
}

static void tear_down(trainer *t)
{
    grv_loader_destroy(&t->loader);
    grv_optimizer_destroy(&t->optimizer);
    grv_network_destroy(&t->validation);
    grv_network_destroy(&t->network);
    grv_dataset_close(&t->data);
    grv_train_state_fini(&t->state);
    grv_free(t->order);
    grv_free(t->rank_samples);
    grv_free(t->checkpoint_path);
    grv_free(t->best_path);
}

/* --- one epoch --- */

static grv_status order_samples(trainer *t)
{
    const int64_t n = t->split.train.count, batch = t->config->batch;
    if (t->config->shuffle)
        GRV_TRY(grv_random_permutation((uint64_t)t->config->seed, (uint64_t)(ORDER_STREAM + t->state.epoch), n, t->order));
    else
        for (int64_t i = 0; i < n; i++) t->order[i] = i;
    const grv_range mine = grv_plan_samples(grv_network_plan(t->network));
    int64_t at = 0;
    for (int64_t step = t->state.step_in_epoch; step < t->steps_per_epoch; step++)
        for (int64_t i = 0; i < mine.count; i++) t->rank_samples[at++] = t->split.train.start + t->order[step * batch + mine.start + i];
    return grv_loader_begin(t->loader, t->rank_samples, at);
}

static grv_status check_loss(const trainer *t)
{
    if (isfinite(grv_exec_loss(grv_network_exec(t->network)))) return GRV_OK;
    const double *const losses = grv_exec_sample_losses(grv_network_exec(t->network));
    int64_t i = 0;
    while (i < t->config->batch - 1 && isfinite(losses[i])) i++;
    GRV_FAIL(GRV_E_NUMERIC, "the loss is not finite in epoch %lld, step %lld, sample %lld; the last checkpoint is kept", (long long)t->state.epoch + 1,
             (long long)t->state.step_in_epoch + 1, (long long)(t->split.train.start + t->order[t->state.step_in_epoch * t->config->batch + i]));
}

/* a step may have gone too far for its loss to tell: the checkpoint before it is worth more than this one */
static grv_status check_weights(const trainer *t)
{
    const float *const weights = grv_network_parameters(t->network);
    const int64_t n = grv_plan_summarise(grv_network_plan(t->network)).param_count;
    bool finite = true;
    for (int64_t i = 0; i < n; i++) finite = finite && isfinite(weights[i]);
    GRV_CHECK(finite, GRV_E_NUMERIC, "the weights are not finite in epoch %lld after step %lld; the last checkpoint is kept",
              (long long)t->state.epoch + 1, (long long)t->state.step_in_epoch);
    return GRV_OK;
}

static grv_status save(trainer *t)
{
    GRV_TRY(grv_checkpoint_save(t->checkpoint_path, t->network, t->optimizer, &t->state, NULL, t->comm));
    return agree(t, is_root(t) ? grvi_run_metrics(t->config, &t->state) : GRV_OK);
}

/* GRV_AGAIN: stop was asked for, by any rank */
static grv_status one_step(trainer *t, double *rate)
{
    const float *input = NULL, *target = NULL;
    grv_status status = grv_loader_next(t->loader, &input, &target);
    if (status == GRV_OK && t->stop_asked != NULL && t->stop_asked(t->stop_argument)) status = GRV_AGAIN;
    status = agree(t, status);
    if (status != GRV_OK) return status;
    GRV_TRY(grv_network_run(t->network, input, target));
    GRV_TRY(check_loss(t));
    *rate = grv_schedule_rate(&t->schedule, grv_optimizer_count(t->optimizer), t->state.epoch);
    GRV_TRY(grv_optimizer_step(t->optimizer, *rate, NULL));
    t->state.loss_sum += grv_exec_loss(grv_network_exec(t->network));
    t->state.step_in_epoch++;
    if (t->traced || grv_optimizer_count(t->optimizer) < 2) return GRV_OK;
    t->traced = true; /* the second step: the first one touches fresh memory */
    return agree(t, is_root(t) ? grvi_run_trace(t->config, t->network, 0) : GRV_OK);
}

static grv_status finish_epoch(trainer *t, const grv_epoch *epoch)
{
    grv_train_state *const s = &t->state;
    GRV_TRY(agree(t, grv_train_state_append(s, epoch)));
    s->epoch++;
    s->step_in_epoch = 0;
    s->loss_sum = 0;
    const double measure = isnan(epoch->validation_loss) ? epoch->train_loss : epoch->validation_loss;
    if (measure < s->best_loss) {
        s->best_loss = measure;
        s->best_epoch = epoch->epoch;
        GRV_TRY(grv_checkpoint_save(t->best_path, t->network, NULL, s, NULL, t->comm));
    }
    const grv_log_field fields[] = {grv_log_i64("epoch", s->epoch), grv_log_f64("train_loss", epoch->train_loss),
                                    grv_log_f64("validation_loss", epoch->validation_loss), grv_log_f64("learning_rate", epoch->learning_rate),
                                    grv_log_f64("seconds", epoch->seconds)};
    const int n_fields = sizeof fields / sizeof *fields;
    grv_log_event(t->log, GRV_LOG_INFO, "epoch", fields, n_fields);
    if (s->epoch % t->config->checkpoint_epochs == 0 || s->epoch == t->config->epochs) return save(t);
    return agree(t, is_root(t) ? grvi_run_metrics(t->config, s) : GRV_OK);
}

static grv_status one_epoch(trainer *t, grv_progress *progress)
{
    const double begin = grv_clock_seconds(), waited = grv_loader_waited(t->loader);
    grv_epoch epoch = {.epoch = t->state.epoch, .validation_loss = (double)NAN};
    GRV_TRY(agree(t, order_samples(t)));
    while (t->state.step_in_epoch < t->steps_per_epoch) {
        const grv_status status = one_step(t, &epoch.learning_rate);
        if (status == GRV_AGAIN) {
            GRV_TRY(agree(t, check_weights(t)));
            GRV_TRY(save(t));
            GRV_FAIL(GRV_E_INTERRUPTED, "stopped in epoch %lld after step %lld of %lld; run it again to go on", (long long)t->state.epoch + 1,
                     (long long)t->state.step_in_epoch, (long long)t->steps_per_epoch);
        }
        GRV_TRY(status);
        grv_progress_update(progress, t->state.epoch * t->steps_per_epoch + t->state.step_in_epoch);
    }
    GRV_TRY(agree(t, check_weights(t)));
    epoch.step = grv_optimizer_count(t->optimizer);
    epoch.train_loss = t->state.loss_sum / (double)t->steps_per_epoch;
    epoch.wait_seconds = grv_loader_waited(t->loader) - waited;
    if (t->validation != NULL) {
        grv_evaluation evaluation;
        GRV_TRY(grv_evaluate(t->validation, t->data, t->split.validation, NULL, t->comm, NULL, NULL, &evaluation));
        epoch.validation_loss = evaluation.relative_l2;
    }
    epoch.seconds = grv_clock_seconds() - begin;
    return finish_epoch(t, &epoch);
}

static bool ran_out_of_patience(const trainer *t)
{
    return t->config->patience > 0 && t->state.best_epoch >= 0 && t->state.epoch - 1 - t->state.best_epoch >= t->config->patience;
}

static void describe(trainer *t)
{
    const grv_plan_summary s = grv_plan_summarise(grv_network_plan(t->network));
    const grv_network_params *const p = &t->network->params;
    grv_log_message(t->log, GRV_LOG_INFO, "%lld parameters; mesh data %d x domain %d, %d thread%s a rank; %.1f MB of memory on rank 0",
                    (long long)grv_graph_param_count(grv_network_graph(t->network)), p->n_data, p->n_domain, p->n_threads, p->n_threads > 1 ? "s" : "",
                    1e-6 * (double)(s.arena_bytes + s.scratch_bytes + s.buffer_bytes + 4 * s.param_bytes));
    if (t->split.train.count % t->config->batch != 0)
        grv_log_message(t->log, GRV_LOG_INFO, "%lld of %lld training samples make no whole batch and are left out of each epoch",
                        (long long)(t->split.train.count % t->config->batch), (long long)t->split.train.count);
}

static grv_status train(trainer *t)
{
    grv_progress progress;
    grv_status status = GRV_OK;
    GRV_TRY(set_up(t));
    describe(t);
    grv_progress_begin(&progress, t->log, "train", "steps", t->config->epochs * t->steps_per_epoch);
    while (status == GRV_OK && t->state.epoch < t->config->epochs && !ran_out_of_patience(t)) status = one_epoch(t, &progress);
    grv_progress_end(&progress);
    GRV_TRY(status);
    /* an early end falls between checkpoints */
    return ran_out_of_patience(t) && t->state.epoch % t->config->checkpoint_epochs != 0 ? save(t) : GRV_OK;
}

grv_status grv_train(const grv_train_config *config, grv_comm *comm, grv_log *log, grv_stop_asked *stop_asked, void *stop_argument,
                     grv_train_result *result)
{
    const double begin = grv_clock_seconds();
    trainer t = {.config = config, .comm = comm != NULL && grv_comm_size(comm) > 1 ? comm : NULL, .log = log, .stop_asked = stop_asked,
                 .stop_argument = stop_argument, .state = grv_train_state_init()};
    const grv_status status = train(&t);
    if (status == GRV_OK) {
        const grv_epoch *const last = t.state.n_history > 0 ? &t.state.history[t.state.n_history - 1] : NULL;
        *result = (grv_train_result){.epochs = t.state.epoch, .train_loss = last == NULL ? (double)NAN : last->train_loss,
                                     .validation_loss = last == NULL ? (double)NAN : last->validation_loss, .best_loss = t.state.best_loss,
                                     .best_epoch = t.state.best_epoch, .seconds = grv_clock_seconds() - begin,
                                     .stopped_early = ran_out_of_patience(&t)};
    }
    tear_down(&t);
    return status;
}
